/** Broker properties of a Kafka for tests, wherever it runs: one broker, and quick where a test would have to wait. */
export const testBrokerProperties: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  // One broker: everything that is replicated elsewhere has one copy here.
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.num.partitions': '1',
  'transaction.state.log.min.isr': '1',
  'auto.create.topics.enable': 'false',
  // A killed broker is forgotten soon, so that it can come back.
  'broker.session.timeout.ms': '1500',
  'broker.heartbeat.interval.ms': '300',
  // A group forms at once instead of waiting for more members.
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  // The cleaner looks often, so that tests of compaction need not wait.
  'log.cleaner.backoff.ms': '100',
  'log.retention.check.interval.ms': '500',
  'log.initial.task.delay.ms': '100',
}
