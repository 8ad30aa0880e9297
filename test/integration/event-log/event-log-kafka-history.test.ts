/** What a replay stores of the rejects that it meets, on Kafka. */
import { expect, test } from 'vitest'
import { openKafkaHistory } from '../../../services/shared/event-log/kafka/history.ts'
import { openKafkaInspector } from '../../../services/shared/event-log/kafka/inspector.ts'
import type { LogRecord, Reject } from '../../../services/shared/event-log/port.ts'
import { placeName } from '../../../services/shared/event-log/reject-filter.ts'
import { commitAll, deliveriesOf, describeKafka, groupOf, numbered } from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'

describeKafka('the history of the event log', ({ address, openReader, openWriter }) => {
  test('its ends are those of all partitions, also while another member of the group holds some of them', async () => {
    const settings = { ...settingsFor(address()), sessionMs: 6_000, heartbeatMs: 600 }
    const own = { ...settings, ...groupOf(settings) }
    await makeTopics(settings)
    const writer = await openWriter(settings)
    await writer.append(numbered(0, 30))
    const history = await openKafkaHistory(own, { logger: silent })
    const replay = await history.open('shared')
    const all = await replay.lag()
    const other = await openReader({ ...settings, groupId: `${own.groupId}-shared` } as typeof settings)
    await expect.poll(async () => (await replay.lag()).length).toBeLessThan(all.length)
    const places = (positions: readonly { topic: string; partition: number }[]) =>
      positions.map(({ topic, partition }) => `${topic}/${partition}`).toSorted()
    const ends = await history.ends()
    expect(places(ends)).toEqual(places(all))
    expect(ends.reduce((sum, { next }) => sum + next, 0)).toBe(30)
    await other.close()
    await replay.close()
    await history.close()
  }, 120_000)

  test('a replay stores only rejects that the projectors have not stored and will not store', async () => {
    const settings = { ...settingsFor(address()), sessionMs: 6_000, heartbeatMs: 600 }
    const own = { ...settings, ...groupOf(settings) }
    await makeTopics(settings)
    const writer = await openWriter(settings)
    await writer.append(numbered(0, 30))
    const live = await openReader(settings)
    const passed = await deliveriesOf(live, 30)
    const [stored, accepted] = passed.flatMap(({ records }) => records)
    if (!stored || !accepted) throw new Error('there are no records')
    await live.reject(rejectsOf(stored))
    await commitAll(live, passed)
    await writer.append(numbered(30, 1))
    const [ahead] = (await deliveriesOf(live, 1)).flatMap(({ records }) => records)
    if (!ahead) throw new Error('the record after the committed positions did not arrive')
    const before = await storedRejects()

    const history = await openKafkaHistory(own, { logger: silent })
    for (const consumer of ['first', 'second']) {
      const replay = await history.open(consumer)
      if (consumer === 'first') {
        await replay.reject(rejectsOf(stored, ahead))
        expect(await storedRejects()).toEqual(before)
      }
      // A newer rule refuses a record that the projectors accepted. After a rebalance it is read again.
      await replay.reject(rejectsOf(stored, accepted, ahead))
      await replay.reject(rejectsOf(stored, accepted, ahead))
      const found = await storedRejects()
      expect(found.count).toBe(2)
      expect(found.places.map(({ place }) => place)).toEqual([stored, accepted].map(placeName).toSorted())
      expect(found.places).toEqual(expect.arrayContaining(before.places))
      await replay.close()
    }
    await history.close()

    async function storedRejects() {
      const inspector = await openKafkaInspector(own, { logger: silent })
      try {
        const { rejects } = await inspector.rejects({ limit: 100 })
        const places = rejects.map(({ record, rejectedAt }) => ({ place: placeName(record), rejectedAt }))
        return {
          count: await inspector.rejectCount(),
          places: places.toSorted((a, b) => (a.place < b.place ? -1 : 1)),
        }
      } finally {
        await inspector.close()
      }
    }
  }, 120_000)
})

function rejectsOf(...records: LogRecord[]): Reject[] {
  return records.map(record => ({ record, reason: 'bad' }))
}
