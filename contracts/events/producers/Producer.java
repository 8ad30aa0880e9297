/**
 * A producer in Java: publishes each line of its input, which is NDJSON as ../README.md describes it, as JSON on Kafka.
 *
 *     java -cp 'kafka-clients.jar:jackson-databind.jar:...' Producer.java 127.0.0.1:9094 <events.ndjson
 *
 * A second argument is the prefix of the topics, if yours have one.
 *
 * In your platform, call `publish` where a row has changed and its transaction is committed. A process that ends between the two
 * loses the event: an outbox (../from-a-database.md) cannot. It ends with an error if the broker refused a record.
 */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Producer implements AutoCloseable {
    static final Map<String, String> TOPICS = Map.of("campaign", "campaigns", "pledge", "pledges", "api-key", "api-keys");

    private final KafkaProducer<String, String> kafka;
    private final String prefix;
    private final AtomicReference<String> refused = new AtomicReference<>();

    Producer(String brokers, String prefix) {
        this.prefix = prefix;
        // The default partitioner is the right one.
        kafka = new KafkaProducer<>(
            Map.of(
                "bootstrap.servers", brokers,
                // All replicas acknowledge, and a repeated request changes neither the order nor the number of records.
                "acks", "all",
                "enable.idempotence", true,
                "compression.type", "lz4",
                "linger.ms", 20),
            new StringSerializer(),
            new StringSerializer());
    }

    /** Publishes the whole state of an entity. If the state is null, the entity with this key is deleted, and never returns. */
    void publish(String type, JsonNode state, String key) {
        String topic = TOPICS.get(type);
        if (topic == null) throw new IllegalArgumentException("the type " + type + " is none of " + TOPICS.keySet());
        String of = state.isNull() ? key : keyOf(type, state);
        if (of == null) throw new IllegalArgumentException("a deletion needs a key");
        String value = state.isNull() ? null : state.toString();
        // It waits while the client's buffer is full.
        kafka.send(new ProducerRecord<>(prefix + topic, of, value), (sent, error) -> {
            if (error != null) refused.compareAndSet(null, topic + " " + of + ": " + error.getMessage());
        });
    }

    static String keyOf(String type, JsonNode state) {
        if (type.equals("api-key")) return state.get("key").asText();
        String campaign = state.get("campaign_id").asText();
        return type.equals("campaign") ? campaign : campaign + "/" + state.get("pledge_id").asText();
    }

    /** Each record is delivered, or was refused after the client's own retries (`delivery.timeout.ms`, 2 minutes). */
    @Override
    public void close() throws Exception {
        kafka.close();
        if (refused.get() != null) throw new IllegalStateException("records were refused, the first: " + refused.get());
    }

    public static void main(String[] args) throws Exception {
        var json = new ObjectMapper();
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (var producer = new Producer(args[0], args.length > 1 ? args[1] : "")) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                if (line.isBlank()) continue;
                JsonNode event = json.readTree(line);
                String key = event.hasNonNull("key") ? event.get("key").asText() : null;
                producer.publish(event.get("type").asText(), event.get("data"), key);
            }
        }
    }
}
