/** What `status` and `rejects` see of the event log on Kafka. */
import fc from 'fast-check'
import type { Message } from 'kafkajs'
import { beforeEach, describe, expect, test } from 'vitest'
import { type KafkaSettings, rejectTopicName } from '../../../services/shared/event-log/kafka/client.ts'
import {
  type KafkaInspector,
  openKafkaInspector,
} from '../../../services/shared/event-log/kafka/inspector.ts'
import { openProducer } from '../../../services/shared/event-log/kafka/producer.ts'
import type { SearchBounds } from '../../../services/shared/event-log/kafka/reject-search.ts'
import {
  createRejectPartitioner,
  readReject,
  rejectHeaders,
  rejectMessage,
} from '../../../services/shared/event-log/kafka/rejects.ts'
import type { LogRecord, StoredReject } from '../../../services/shared/event-log/port.ts'
import { byLatest, placeName } from '../../../services/shared/event-log/reject-filter.ts'
import { kcat, kcatProgram } from '../../support/kafka/kcat.ts'
import {
  commitAll,
  deliveriesOf,
  describeKafka,
  groupOf,
  numbered,
  recordsOf,
} from '../../support/kafka/suite.ts'
import { makeTopics, readTopic, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'
import { movedLeader, watchClients } from '../../support/kafka/watched-client.ts'
import { anyFilter, placesAskedFor, placesOf, rejectsOf, startedAt } from '../../support/reject-filters.ts'
import { needs } from '../../support/requirements.ts'

describeKafka('the inspector of the event log', ({ address, openReader, openWriter }) => {
  let settings: KafkaSettings
  let records: LogRecord[]

  async function inspect<T>(
    work: (inspector: KafkaInspector) => Promise<T>,
    searchBounds?: SearchBounds,
  ): Promise<T> {
    const inspector = await openKafkaInspector(
      { ...settings, ...groupOf(settings) },
      { logger: silent, ...(searchBounds && { searchBounds }) },
    )
    try {
      return await work(inspector)
    } finally {
      await inspector.close()
    }
  }

  async function send(messages: readonly Message[]): Promise<void> {
    const options = {
      compression: 'lz4',
      createPartitioner: createRejectPartitioner,
      logger: silent,
    } as const
    const producer = await openProducer(settings, options)
    await producer.send(messages.map(message => ({ topic: rejectTopicName(settings), message })))
    await producer.close()
  }

  /** Puts rejects at the times that they have. */
  async function putAt(rejects: readonly StoredReject[]): Promise<void> {
    await send(
      rejects.map(reject => ({ ...rejectMessage(settings, reject), timestamp: String(reject.rejectedAt) })),
    )
  }

  beforeEach(async () => {
    settings = settingsFor(address())
    // Tests put rejects at times that are long past.
    await makeTopics(settings, { config: { 'retention.ms': '-1' } })
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

    test('are counted again if a leader has moved, by a reader, too', async () => {
      const client = watchClients()
      try {
        const reader = await openReader(settings)
        records = await recordsOf(reader, 10)
        await reader.reject(records.slice(0, 10).map(record => ({ record, reason: 'moved' })))
        client.refuseNext(movedLeader())
        expect(await reader.rejectCount?.()).toBe(10)
        client.refuseNext(movedLeader())
        expect(await inspect(inspector => inspector.rejectCount())).toBe(10)
        expect(client.refused()).toBe(2)
      } finally {
        client.restore()
      }
    })

    test('are none if none were stored', async () => {
      expect(await inspect(inspector => inspector.rejects({ limit: 5 }))).toEqual({
        ...{ rejects: [], matched: 0 },
        ...{ messages: 0, of: 0, unreadable: [], unreadableCount: 0 },
      })
    })

    test('are listed although another producer wrote into their topic, and that is reported', async context => {
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

    test('are found exactly as a filter asks for them, wherever they stand, each as it was first put', async () => {
      const rejects = rejectsOf(900, 2)
      // Later on all of them are put again, as a projector does that was killed before it committed.
      const again = rejects.map(reject => ({ ...reject, rejectedAt: reject.rejectedAt + 20 * 60_000 }))
      await putAt([...rejects, ...again.map(reject => ({ ...reject, reason: 'put again' }))])
      await inspect(inspector =>
        fc.assert(
          fc.asyncProperty(anyFilter, async filter => {
            // Without an end it would ask for those as well that are put again.
            const asked = { until: startedAt + 15 * 60_000, ...filter }
            const expected = placesAskedFor(rejects, asked)
            const { rejects: listed, ...found } = await inspector.rejects({ ...asked, limit: 10_000 })
            expect(placesOf(listed).toSorted()).toEqual(expected.toSorted())
            expect(listed).toEqual(listed.toSorted(byLatest))
            expect(found).toMatchObject({ matched: expected.length, unreadableCount: 0 })
            expect(found).not.toHaveProperty('cutBy')
            const walked: StoredReject[] = []
            await inspector.walkRejects(asked, async part => walked.push(...part) > 0)
            expect(placesOf(walked).toSorted()).toEqual(expected.toSorted())
          }),
          { numRuns: 25 },
        ),
      )
    }, 60_000)

    test('count with their first time in the requested period, for any order of clocks', async () => {
      const [reject] = rejectsOf(1, 1)
      if (!reject) throw new Error('no reject')
      const puts = [20, 5, 6].map(minute => ({
        ...reject,
        reason: `put at ${minute}`,
        rejectedAt: startedAt + minute * 60_000,
      }))
      await putAt(puts)
      const until = startedAt + 10 * 60_000
      const found = await inspect(inspector => inspector.rejects({ until, limit: 5 }))
      expect(found).toMatchObject({ matched: 1, rejects: [{ reason: 'put at 5' }] })
    })

    test('are looked at up to a bound, the latest of each partition, and that is told', async () => {
      await putAt(rejectsOf(900, 2))
      const searchBounds = { messagesMax: 300, msMax: 60_000 }
      const { rejects, ...found } = await inspect(
        inspector => inspector.rejects({ reasonPart: '', limit: 1_000 }),
        searchBounds,
      )
      expect(found).toMatchObject({ messages: 300, of: 900, matched: 300, cutBy: 'messages' })
      const kept = await readTopic(settings, rejectTopicName(settings))
      const latest = [0, 1, 2].flatMap(partition =>
        kept.filter(message => message.partition === partition).slice(-100),
      )
      expect(placesOf(rejects).toSorted()).toEqual(
        latest.map(message => placeName(readReject(settings, message).record)).toSorted(),
      )
    })

    test('are walked until no more are wanted', async () => {
      await putAt(rejectsOf(900, 2))
      const parts: StoredReject[][] = []
      const searched = await inspect(inspector =>
        inspector.walkRejects({}, async part => parts.push(part) < 1),
      )
      expect(parts).toHaveLength(1)
      expect(searched).not.toHaveProperty('cutBy')
    })

    test('whose value was left out are told from deletions', async () => {
      const [reject] = rejectsOf(1, 1)
      if (!reject) throw new Error('no reject')
      const { headers = {}, key } = rejectMessage(settings, reject)
      const omitted = { ...headers, [rejectHeaders.omittedValueBytes]: '5000000' }
      await send([{ key: key ?? null, value: null, headers: omitted }])
      const { rejects } = await inspect(inspector => inspector.rejects({ limit: 5 }))
      expect(rejects).toMatchObject([{ omittedValueBytes: 5_000_000, record: { value: null } }])
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
