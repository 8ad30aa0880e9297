/** The ceiling of the Kafka ingest: only the projector's reader, and each event decoded in full with avsc. */

import { kafkaSettings, registryOf } from '../../../services/distributed.ts'
import { openKafkaReader } from '../../../services/log/kafka/reader.ts'
import { createDecoder, schemaIdsOf } from '../../../services/projector/ingest/decode.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { logger } from './services.ts'

export interface CeilingInput {
  environment: Readonly<Record<string, string>>
  groupId: string
  records: number
}

export interface CeilingResult {
  seconds: number
  /** Of all threads, because Kafka's compression is decoded on other threads than the main one. */
  cpuSeconds: number
}

// The projector's poll size.
const sliceRecordsMax = 2_000
const pollMsMax = 30_000

const { environment, groupId, records } = benchInput<CeilingInput>()
serveBench({ ready: await readAndDecode() })

async function readAndDecode(): Promise<CeilingResult> {
  const config = readConfig(environment)
  const registry = registryOf(config)
  const decode = createDecoder(registry?.known)
  const bounds = {
    recordsMax: sliceRecordsMax,
    bytesMax: config.PLEDGEVIEW_BATCH_BYTES_MAX,
    waitMsMax: pollMsMax,
  }
  const { signal } = new AbortController()
  const reader = await openKafkaReader({ ...kafkaSettings(config), groupId }, { logger })
  const cpu = process.cpuUsage()
  const startedMs = performance.now()
  for (let left = records; left > 0; ) {
    const delivery = await reader.poll(bounds, signal)
    if (delivery.records.length === 0) throw new Error(`${left} of ${records} records never came`)
    await registry?.learn(schemaIdsOf(delivery.records))
    for (const record of delivery.records) {
      if ('reason' in decode(record))
        throw new Error(`offset ${record.offset} of ${record.topic} is a reject`)
    }
    left -= delivery.records.length
  }
  const seconds = (performance.now() - startedMs) / 1000
  const { user, system } = process.cpuUsage(cpu)
  await reader.close()
  return { seconds, cpuSeconds: (user + system) / 1e6 }
}
