/** What `status` and `rejects` see of the event log on Kafka. */
import { beforeEach, describe, expect, test } from 'vitest'
import { type KafkaSettings, rejectTopicName } from '../../services/shared/event-log/kafka/client.ts'
import { type KafkaInspector, openKafkaInspector } from '../../services/shared/event-log/kafka/inspector.ts'
import type { LogRecord } from '../../services/shared/event-log/port.ts'
import { kcat, kcatProgram } from '../support/kafka/kcat.ts'
import {
  commitAll,
  deliveriesOf,
  describeKafka,
  groupOf,
  numbered,
  recordsOf,
} from '../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent, withAdmin } from '../support/kafka/topics.ts'
import { needs } from '../support/requirements.ts'

describeKafka('the inspector of the event log', ({ address, openReader, openWriter }) => {
  let settings: KafkaSettings
  let records: LogRecord[]

  async function inspect<T>(work: (inspector: KafkaInspector) => Promise<T>): Promise<T> {
    const inspector = await openKafkaInspector({ ...settings, ...groupOf(settings) }, { logger: silent })
    try {
      return await work(inspector)
    } finally {
      await inspector.close()
    }
  }

  beforeEach(async () => {
    settings = settingsFor(address())
    await makeTopics(settings)
    const writer = await openWriter(settings)
    await writer.append(numbered(0, 40))
  })

  describe('the rejects', () => {
    test('are listed the latest first and each once, however often they were put', async () => {
      const reader = await openReader(settings)
      records = await recordsOf(reader, 40)
      const [first = [], second = []] = [records.slice(0, 10), records.slice(10, 20)].map(part =>
        part.map(record => ({ record, reason: `reason ${record.offset}` })),
      )
      await reader.reject(first)
      await reader.reject(second)
      await reader.reject(second)
      const { total, listed, latest } = await inspect(async inspector => ({
        total: await inspector.rejectCount(),
        listed: await inspector.rejects({ limit: 100 }),
        latest: await inspector.rejects({ limit: 10 }),
      }))
      expect(total).toBe(30)
      expect(listed.unreadable).toEqual([])
      const places = (found: readonly { record: LogRecord }[]) =>
        found.map(({ record }) => `${record.partition}/${record.offset}`).toSorted()
      expect(places(listed.rejects)).toEqual(places([...first, ...second]))
      expect(places(latest.rejects)).toEqual(places(second))
      const [one] = latest.rejects
      const original = records.find(
        ({ partition, offset }) => partition === one?.record.partition && offset === one.record.offset,
      )
      expect(one?.record.value).toEqual(original?.value)
      expect(one?.reason).toBe(`reason ${original?.offset}`)
    })

    test('are none where none were put', async () => {
      expect(await inspect(inspector => inspector.rejects({ limit: 5 }))).toEqual({
        ...{ rejects: [], matched: 0 },
        ...{ messages: 0, of: 0, unreadable: [], unreadableCount: 0 },
      })
    })

    test('are listed though somebody else wrote into their topic, and that is told', async context => {
      needs(context, kcatProgram)
      const reader = await openReader(settings)
      const [record] = await recordsOf(reader, 40)
      if (!record) throw new Error('no record')
      await kcat(['-b', address(), '-P', '-t', rejectTopicName(settings), '-p', '0'], 'stray\n')
      await reader.reject([{ record, reason: 'bad' }])
      const { rejects, unreadable } = await inspect(inspector => inspector.rejects({ limit: 5 }))
      expect(rejects).toHaveLength(1)
      expect(unreadable).toEqual([{ partition: 0, offset: 0, reason: expect.stringContaining('header') }])
    })

    test('are read without leaving a group behind', async () => {
      const reader = await openReader(settings)
      await reader.reject((await recordsOf(reader, 40)).map(record => ({ record, reason: 'bad' })))
      await inspect(inspector => inspector.rejects({ limit: 5 }))
      const { groups } = await withAdmin(settings, admin => admin.listGroups())
      const own = groups.filter(({ groupId }) => groupId.startsWith(settings.topicPrefix))
      expect(own.map(({ groupId }) => groupId)).toEqual([groupOf(settings).groupId])
    })
  })

  describe('the group', () => {
    test('lags by what is not committed, in every partition', async () => {
      const before = await inspect(inspector => inspector.group())
      expect(before.members).toBe(0)
      expect(before.lag).toHaveLength(9)
      expect(waiting(before.lag)).toBe(40)
      const reader = await openReader(settings)
      await commitAll(reader, await deliveriesOf(reader, 40))
      const after = await inspect(inspector => inspector.group())
      expect(after.members).toBe(1)
      expect(waiting(after.lag)).toBe(0)
    })
  })
})

function waiting(lag: readonly { committed: number; end: number }[]): number {
  return lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
}
