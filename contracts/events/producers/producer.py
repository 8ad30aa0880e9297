"""A producer in Python: publishes each line of its input, which is NDJSON as ../README.md describes it, as JSON on Kafka.

    pip install confluent-kafka
    python3 producer.py 127.0.0.1:9094 <events.ndjson

A second argument is the prefix of the topics, if yours have one.

In your platform, call `publish` where a row has changed and its transaction is committed. A process that ends between the two loses the
event: an outbox (../from-a-database.md) cannot. It ends with an error if the broker refused a record.
"""
import json
import sys

from confluent_kafka import Producer

PREFIX = sys.argv[2] if len(sys.argv) > 2 else ""
TOPICS = {"campaign": f"{PREFIX}campaigns", "pledge": f"{PREFIX}pledges", "api-key": f"{PREFIX}api-keys"}

producer = Producer(
    {
        "bootstrap.servers": sys.argv[1],
        # The partition that Java's client chooses. The default of this client is another one.
        "partitioner": "murmur2_random",
        # All replicas acknowledge, and a repeated request changes neither the order nor the number of records.
        "enable.idempotence": True,
        "compression.type": "lz4",
        "linger.ms": 20,
    }
)
refused = []


def key_of(type, state):
    if type == "api-key":
        return state["key"]
    if type == "campaign":
        return state["campaign_id"]
    return f"{state['campaign_id']}/{state['pledge_id']}"


def publish(type, state, key=None):
    """Publishes the whole state of an entity. If the state is None, the entity with this key is deleted, and never returns."""
    if type not in TOPICS:
        raise ValueError(f"the type {type} is none of {', '.join(TOPICS)}")
    of = key if state is None else key_of(type, state)
    if of is None:
        raise ValueError("a deletion needs a key")
    value = None if state is None else json.dumps(state, ensure_ascii=False)
    while True:
        try:
            producer.produce(TOPICS[type], key=of, value=value, on_delivery=delivered)
            break
        except BufferError:
            # The client's queue is full: wait until records were delivered.
            producer.poll(1)
    producer.poll(0)


def delivered(error, record):
    if error is not None:
        refused.append(f"{record.topic()} {record.key().decode()}: {error}")


try:
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        event = json.loads(line)
        publish(event["type"], event["data"], event.get("key"))
finally:
    # Also those before a bad line: each record is delivered, or was refused after the client's own retries
    # (`delivery.timeout.ms`, 5 minutes).
    producer.flush()
    if refused:
        print(f"{len(refused)} records were refused, the first: {refused[0]}", file=sys.stderr)
sys.exit(1 if refused else 0)
