/**
 * A producer, as a separate process, that appends pledges at a steady rate, and reports for each when it was due. If the producer falls
 * behind, it does not slow the schedule down, but catches up. So the figures include every delay that a client would have seen.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { kafkaSettings } from '../../../services/distributed/settings.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { campaignIdOf } from '../platform/platform.ts'
import { markOf } from './marks.ts'

export interface ProducerInput {
  environment: Readonly<Record<string, string>>
  /** Numbers of the platform's campaigns that the pledges cycle through. */
  campaigns: readonly number[]
}

/** Appends `count` pledges of the load, beginning at `first`, at this rate per second. */
export interface ProducerRequest {
  first: number
  count: number
  perSecond: number
}

export interface ProducerAnswer {
  /** When each pledge was due, ms since the epoch. */
  dueAtMs: Float64Array
}

const tickMs = 5
const appendRecordsMax = 2_000

const logger = pino({ level: 'silent' })
const { environment, campaigns } = benchInput<ProducerInput>()
const writer = await openKafkaWriter(kafkaSettings(readConfig(environment)), { logger })
serveBench({ ready: {}, answer: produce, close: () => writer.close() })

async function produce({ first, count, perSecond }: ProducerRequest): Promise<ProducerAnswer> {
  const dueAtMs = new Float64Array(count)
  const startedAtMs = wallMs()
  let sent = 0
  while (sent < count) {
    const due = Math.min(count, Math.ceil(((wallMs() - startedAtMs) / 1000) * perSecond))
    const until = Math.min(due, sent + appendRecordsMax)
    if (until > sent) {
      const numbers = Array.from({ length: until - sent }, (_, index) => sent + index)
      await writer.append(numbers.map(number => recordOf(first + number)))
      for (const number of numbers) dueAtMs[number] = startedAtMs + (number / perSecond) * 1000
      sent = until
    }
    if (due === until) await delay(tickMs)
  }
  return { dueAtMs }
}

function recordOf(number: number): NewRecord {
  const { campaign, amountMinor } = markOf(number, campaigns.length)
  return newRecordOf(
    pledgeEvent({
      pledge_id: `steady_${number}`,
      campaign_id: campaignIdOf(campaigns[campaign] ?? 0),
      backer_id: `steady_${number % 10_000}`,
      changed_at: Math.round(wallMs()),
      amount_minor: amountMinor,
      platform_amount_minor: amountMinor,
    }),
  )
}

/** Wall clock with fractions, which other processes on this machine share. */
function wallMs(): number {
  return performance.timeOrigin + performance.now()
}
