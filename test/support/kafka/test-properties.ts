/** For brokers that are killed often: the controller soon forgets a killed one, so that it can come back. */
export const killedOften: Readonly<Record<string, string>> = { 'broker.session.timeout.ms': '1500' }

/** Broker properties of every Kafka for tests: one broker, with short waits. */
export const testBrokerProperties: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  // With one broker, internal topics can have only one replica.
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.num.partitions': '1',
  'transaction.state.log.min.isr': '1',
  'auto.create.topics.enable': 'false',
  // Only a stall of the whole machine takes this long. A broker that is silent for longer loses its partitions for a moment, and
  // each request then fails.
  'broker.session.timeout.ms': '9000',
  'broker.heartbeat.interval.ms': '300',
  // A group forms at once instead of waiting for more members.
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  // The cleaner runs often, so that tests of compaction need not wait.
  'log.cleaner.backoff.ms': '100',
  'log.retention.check.interval.ms': '500',
  'log.initial.task.delay.ms': '100',
}
