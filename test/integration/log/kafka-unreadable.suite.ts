/**
 * Records and batches that a broker accepts, and that cannot be read as they are. Each becomes a reject that names its
 * place. The records around it are projected, and the positions move past it.
 */
import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import type { Topic } from '../../../contracts/events/event.ts'
import { createKafka, type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import {
  type Compression,
  compressions,
  compressionType,
} from '../../../services/log/kafka/repairs/codecs.ts'
import type { EventReader, Header, NewRecord } from '../../../services/log/port.ts'
import { backerHasher } from '../../../services/projector/ingest/backer-hash.ts'
import { addDelivery, emptyBatch } from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import type { Databases } from '../../../services/tables/port.ts'
import { createRejectStore, placeName, type Reject } from '../../../services/tables/rejects.ts'
import { range, readDeliveries } from '../../support/events/event-log-records.ts'
import { newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { startsAt } from '../../support/events/starts.ts'
import type { KafkaSuite } from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { keptRejects } from '../../support/projector/reject-filters.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

const compressed = compressions.filter(compression => compression !== 'none')
const bombPlaces = ['pledges/0/5', 'pledges/0/11', 'pledges/0/17', 'pledges/0/23', 'campaigns/0/4']
// Five together unpack to more than is allowed, and each alone does not.
const largeValue = Buffer.alloc(14 * 1024 ** 2)

// The batches are large, so a busy machine needs time for them.
const session = { sessionMs: 30_000 }

export function describeUnreadable({ address, openReader, openWriter }: KafkaSuite): void {
  let settings: KafkaSettings
  const model = useModelTables()
  let databases: Databases

  beforeEach(async () => {
    databases = await model.freshDatabases()
    settings = settingsFor(address())
    // Snappy makes a row of zeros only twenty times smaller.
    await makeTopics(settings, { partitions: 1, config: { 'max.message.bytes': String(16 * 1024 ** 2) } })
  })

  /** Each record becomes a batch. */
  async function append(...records: NewRecord[]): Promise<void> {
    const writer = await openWriter({ ...settings, compression: 'none' })
    for (const record of records) await writer.append([record])
  }

  /** One batch of five records that is far too large after decompression. */
  async function appendBomb(compression: Compression, topic: Topic = 'pledges'): Promise<void> {
    const producer = createKafka(settings, silent).producer()
    await producer.connect()
    try {
      await producer.send({
        topic: topicName(settings, topic),
        compression: compressionType(compression),
        messages: range(0, 5).map(number => ({ key: `c/bomb_${number}`, value: largeValue })),
      })
    } finally {
      await producer.disconnect()
    }
  }

  async function store(reader: EventReader, rejects: readonly Reject[]): Promise<void> {
    const keptMs = 86_400_000
    await createRejectStore({ tables: model.tables, databases, keptMs, now: Date.now })(reader.log, rejects)
  }

  const kept = () => keptRejects(model.tables, databases)

  /** Reads like the projector: rejects are stored, and everything is committed. */
  async function projected(
    reader: EventReader,
    count: number,
  ): Promise<{ accepted: number; rejects: Reject[] }> {
    const rejects: Reject[] = []
    let accepted = 0
    for (const delivery of await readDeliveries(reader, count)) {
      const batch = emptyBatch(delivery.assignment, backerHasher('0'.repeat(64)))
      addDelivery(batch, delivery, createDecoder())
      await store(reader, batch.rejects)
      await reader.commit(delivery.assignment, [...batch.positions.values()])
      rejects.push(...batch.rejects)
      accepted += batch.records - batch.rejects.length
    }
    return { accepted, rejects }
  }

  test('for far too many headers: the record is a reject, with key and value', {
    timeout: 120_000,
  }, async () => {
    const headers = range(0, 60_000).map((number): Header => [`h${number}`, Buffer.from('1')])
    await append(pledge(0), { ...pledge(1), headers }, pledge(2))
    const startedAt = performance.now()
    const { accepted, rejects } = await projected(await openReader({ ...settings, ...session }), 3)
    // Quadratic decoding takes ten minutes.
    expect(performance.now() - startedAt).toBeLessThan(90_000)
    expect(accepted).toBe(2)
    expect(rejects).toMatchObject([
      {
        record: { partition: 0, offset: 1, ...pledge(1) },
        reason: 'the record has 60,000 headers, and 1,000 are allowed',
      },
    ])
    expect(await kept()).toMatchObject([{ record: pledge(1), headerCount: 60_000 }])
  })

  test('for a key of 12 times the same 900 KB, which only zstd packs: the reject is kept, with its sizes', async () => {
    const block = randomBytes(900_000)
    const key = Buffer.concat(Array.from({ length: 12 }, () => block))
    const writer = await openWriter({ ...settings, compression: 'zstd' })
    await writer.append([{ ...pledge(0), key, value: Buffer.from('x') }])
    await projected(await openReader({ ...settings, ...session }), 1)
    expect((await kept()).map(({ record, sizes }) => ({ place: placeName(record), ...sizes }))).toEqual([
      { place: 'pledges/0/0', key: key.length, value: 1, headers: 0 },
    ])
  })

  test('for batches that unpack to too much: each is a listed reject, and reading goes on', {
    timeout: 180_000,
  }, async () => {
    for (const [index, compression] of compressed.entries()) {
      await append(pledge(index))
      await appendBomb(compression)
    }
    // An answer with this topic and the pledges stops after it.
    await appendBomb('zstd', 'campaigns')
    const reader = await openReader({ ...settings, ...session })
    const { accepted, rejects } = await projected(reader, 9)
    expect(accepted).toBe(4)
    expect(rejects.map(({ record }) => placeName(record)).toSorted()).toEqual(bombPlaces.toSorted())
    const ofPledges = rejects.filter(({ record }) => record.topic === 'pledges')
    expect(ofPledges.map(({ reason }) => reason)).toEqual([
      'the batch of offsets 1 to 5 (gzip) unpacks to more than 64 MiB',
      'the batch of offsets 7 to 11 (snappy) unpacks to more than 64 MiB',
      'the batch of offsets 13 to 17 (lz4) unpacks to more than 64 MiB',
      'the batch of offsets 19 to 23 (zstd) unpacks to more than 64 MiB',
    ])
    const listed = await kept()
    expect(listed.map(({ record }) => placeName(record)).toSorted()).toEqual(bombPlaces.toSorted())
    for (const { record, sizes } of listed) {
      expect(record.value).toBeNull()
      expect(sizes.value).toBeGreaterThan(0)
    }
    expect((await reader.lag()).find(({ topic }) => topic === 'pledges')).toMatchObject({
      committed: 24,
      end: 24,
    })
    await reader.close()

    // A rebuild may begin anywhere, also within such a batch.
    const again = await openReader(
      { ...settings, ...session },
      startsAt({ 'pledges/0': 9, 'campaigns/0': 5 }),
    )
    const replayed = await projected(again, 5)
    expect(replayed.accepted).toBe(2)
    expect(replayed.rejects.map(({ record }) => placeName(record))).toEqual(bombPlaces.slice(1, 4))
  })
}

function pledge(number: number): NewRecord {
  return newRecordOf(pledgeEvent({ campaign_id: 'c', pledge_id: `p_${number}` }))
}
