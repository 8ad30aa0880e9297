/** A producer, as a separate process, that fills the pledges topic with small pledges as fast as the broker accepts them. */
import { encodeState } from '../../../contracts/events/codec.ts'
import { keyOf, type StateEvent } from '../../../contracts/events/event.ts'
import { kafkaSettings } from '../../../services/distributed.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { campaignIdOf } from '../platform.ts'
import { logger } from './services.ts'

export interface BacklogInput {
  environment: Readonly<Record<string, string>>
  pledges: number
  /** The pledges cycle through this many campaigns of the platform. */
  campaigns: number
}

export interface BacklogResult {
  seconds: number
}

const recordsPerAppend = 2_000
const changedAt = Date.UTC(2026, 0, 1)

const { environment, pledges, campaigns } = benchInput<BacklogInput>()
serveBench({ ready: await append() })

async function append(): Promise<BacklogResult> {
  const writer = await openKafkaWriter(kafkaSettings(readConfig(environment)), { logger })
  const startedMs = performance.now()
  for (let first = 0; first < pledges; first += recordsPerAppend) {
    const count = Math.min(recordsPerAppend, pledges - first)
    await writer.append(Array.from({ length: count }, (_, index) => recordOf(first + index)))
  }
  const seconds = (performance.now() - startedMs) / 1000
  await writer.close()
  return { seconds }
}

function recordOf(number: number): NewRecord {
  const amount = 500 + (number % 10_000)
  const event: StateEvent = {
    type: 'pledge',
    data: {
      pledge_id: `backlog_${number}`,
      campaign_id: campaignIdOf(number % campaigns),
      backer_id: `backlog_${number % 1_000_003}`,
      version: 1,
      changed_at: changedAt,
      status: 'ACTIVE',
      amount_minor: amount,
      platform_amount_minor: amount,
      reward_id: null,
    },
  }
  return { topic: 'pledges', key: Buffer.from(keyOf(event)), value: encodeState(event) }
}
