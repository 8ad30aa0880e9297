/** The history of the event log on Kafka, which a rebuild reads. */
import { expect, test } from 'vitest'
import { openKafkaHistory } from '../../../services/log/kafka/history.ts'
import { describeKafka, groupOf, numbered } from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { startsAt } from '../../support/starts.ts'

describeKafka('the history of the event log', ({ address, openReader, openWriter }) => {
  test('its ends are those of all partitions, also while another member of the group holds some of them', async () => {
    const settings = { ...settingsFor(address()), sessionMs: 6_000, heartbeatMs: 600 }
    const own = { ...settings, ...groupOf(settings) }
    await makeTopics(settings)
    const writer = await openWriter(settings)
    await writer.append(numbered(0, 30))
    const history = await openKafkaHistory(own, { logger: silent })
    const replay = await history.open('shared', startsAt({}))
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
})
