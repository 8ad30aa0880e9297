/** What `status` sees of the event log on Kafka. */
import { expect, test } from 'vitest'
import { type KafkaInspector, openKafkaInspector } from '../../../services/log/kafka/inspector.ts'
import { commitAll, deliveriesOf, describeKafka, groupOf, numbered } from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'

describeKafka('the inspector of the event log', ({ address, openReader, openWriter }) => {
  test('sees that the group lags by what is not committed, in every partition', async () => {
    const settings = settingsFor(address())
    await makeTopics(settings)
    const writer = await openWriter(settings)
    await writer.append(numbered(0, 40))

    async function inspect<T>(work: (inspector: KafkaInspector) => Promise<T>): Promise<T> {
      const inspector = await openKafkaInspector({ ...settings, ...groupOf(settings) }, { logger: silent })
      try {
        return await work(inspector)
      } finally {
        await inspector.close()
      }
    }

    const before = await inspect(inspector => inspector.group())
    expect(before.members).toBe(0)
    expect(before.lag).toHaveLength(15)
    expect(waiting(before.lag)).toBe(40)
    const reader = await openReader(settings)
    await commitAll(reader, await deliveriesOf(reader, 40))
    const after = await inspect(inspector => inspector.group())
    expect(after.members).toBe(1)
    expect(waiting(after.lag)).toBe(0)
    // Offsets of another cluster are other records.
    expect(reader.log).toBe((await inspect(inspector => inspector.log())).log)
  })
})

function waiting(lag: readonly { committed: number; end: number }[]): number {
  return lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
}
