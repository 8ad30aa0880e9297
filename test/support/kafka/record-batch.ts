/** Record batches as kafkajs writes them, and as it reads them, for tests of our decoder. */
import { createRequire } from 'node:module'
import { type Compression, compressions } from '../../../services/log/kafka/repairs/codecs.ts'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import type { FetchedMessage } from '../../../services/log/kafka/repairs/record-batches.ts'

loadKafkajs()
const require = createRequire(import.meta.url)

export interface BatchRecord {
  key: Buffer | null
  value: Buffer | null
  headers?: Readonly<Record<string, Buffer | Buffer[]>>
  timestampDelta?: number | bigint
}

export interface BatchToWrite {
  records: readonly BatchRecord[]
  compression?: Compression
  firstOffset?: number
  isTransactional?: boolean
}

const firstTimestamp = 1_700_000_000_000

const Record = require('kafkajs/src/protocol/recordBatch/record/v0/index.js') as (record: object) => object
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0/index.js') as {
  RecordBatch(batch: object): Promise<{ buffer: Buffer }>
}
const Decoder = require('kafkajs/src/protocol/decoder.js') as new (bytes: Buffer) => object
const decode = require('kafkajs/src/protocol/recordBatch/v0/decoder.js') as (
  decoder: object,
) => Promise<{ records: object[] }>

export async function writeBatch({
  records,
  compression = 'none',
  firstOffset = 0,
  isTransactional = false,
}: BatchToWrite): Promise<Buffer> {
  const { buffer } = await RecordBatch({
    compression: compressions.indexOf(compression),
    firstOffset: BigInt(firstOffset),
    firstTimestamp,
    maxTimestamp: firstTimestamp + 1_000,
    lastOffsetDelta: records.length - 1,
    transactional: isTransactional,
    records: records.map((record, offsetDelta) => Record({ ...record, offsetDelta })),
  })
  return buffer
}

/** Reads the partitions of an answer with the decoder that kafkajs has now. */
export async function readAnswer(partitions: readonly Buffer[]): Promise<FetchedMessage[][]> {
  const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages.js') as (
    answer: object,
  ) => Promise<FetchedMessage[]>
  const sized = partitions.map(bytes => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  })
  const answer = new Decoder(Buffer.concat(sized))
  const read: FetchedMessage[][] = []
  for (const _ of partitions) read.push(await decodeMessages(answer))
  return read
}

/** The records of one batch, as kafkajs's own decoder reads them. */
export async function readByKafkajs(batch: Buffer): Promise<object[]> {
  return (await decode(new Decoder(batch))).records
}
