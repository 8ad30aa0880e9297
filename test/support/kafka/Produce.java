/**
 * Publishes a record under each key that stands in a line of its input, with Kafka's own Java client and its default
 * partitioner. Prints the partition and the key of each. Arguments: the address of a broker, and the topic.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Produce {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        List<String> keys = input.lines().toList();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (String key : keys) {
                var sent = producer.send(new ProducerRecord<>(args[1], key, "from Java")).get();
                output.println(sent.partition() + " " + key);
            }
        }
    }
}
