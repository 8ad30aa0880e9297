/** The history that every ingest run reads from the topics: the demo platform's events, framed with the registry's ids, or as JSON. */
import { type ChangeEvent, keyOf, type StateEvent, topicOf } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { kafkaSettings, stateEncoderOf } from '../../../services/distributed.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import type { Config } from '../../../services/runtime/config.ts'
import { sampleCampaigns } from '../../support/sample-campaigns.ts'
import { logger } from './services.ts'

export interface AppendedHistory {
  events: number
  /** Time in the writer alone, without generating and encoding the events, s. */
  appendSeconds: number
}

const now = Date.UTC(2026, 0, 1)
// As in `events append`.
const recordsPerAppend = 2_000

/** Appends the whole history of this many campaigns, some 70 events each. */
export async function appendHistory(
  config: Config,
  campaigns: number,
  form: 'avro' | 'json',
): Promise<AppendedHistory> {
  const encode = form === 'avro' ? await stateEncoderOf(config) : encodeJson
  const writer = await openKafkaWriter({ ...kafkaSettings(config), compression: 'lz4' }, { logger })
  let records: NewRecord[] = []
  let events = 0
  let appendSeconds = 0

  async function flush(): Promise<void> {
    const startedMs = performance.now()
    await writer.append(records)
    appendSeconds += (performance.now() - startedMs) / 1000
    events += records.length
    records = []
  }

  try {
    for (const event of sampleCampaigns(now, campaigns)) {
      records.push({ topic: topicOf[event.type], key: Buffer.from(keyOf(event)), value: encode(event) })
      if (records.length === recordsPerAppend) await flush()
    }
    await flush()
    return { events, appendSeconds }
  } finally {
    await writer.close()
  }
}

/** The `data` of the event's line of NDJSON. */
function encodeJson(event: StateEvent): Buffer {
  const line = formatEvent({ ...event, key: keyOf(event) } as ChangeEvent)
  return Buffer.from(JSON.stringify(JSON.parse(line).data))
}
