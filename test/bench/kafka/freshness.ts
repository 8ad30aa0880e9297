/**
 * Freshness: the time from a change's append until it can be read, at a steady rate of events, with two projectors.
 *
 * End to end: a reader queries the data teams' view in a loop. A pledge is visible when an answer contains it. The time is
 * measured from two moments: when the log acknowledged the append, and when the event was due. The second includes the
 * delays of a slow producer (coordinated omission).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { databasesOf } from '../../../services/distributed.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import { campaignIdOf, loadPlatform } from '../platform/platform.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { createSightings, marksPerCampaign, type Sightings } from './marks.ts'
import { type KafkaServices, startProjector, withKafkaServices } from './services.ts'
import type { ProducerAnswer, ProducerInput, ProducerRequest } from './steady-producer.ts'

const platform = { campaigns: 100_000, pledges: 2_500_000 }
const perSecond = 2_000
const warmUpSeconds = 5
const seconds = 30
const projectors = 2
// The pause between an answer and the next query. It delays a sighting by up to this time.
const lookPauseMs = 50
const lastSeenMsMax = 60_000
const produceMsMax = 180_000

const warmUps = warmUpSeconds * perSecond
const pledges = warmUps + seconds * perSecond
// The smallest number with room for all pledges. Each campaign gets a pledge about every second, so each fold is spread out.
const campaigns = Math.ceil(pledges / marksPerCampaign)
const stride = Math.floor(platform.campaigns / campaigns)

interface Measured {
  sinceAcknowledgedMs: number[]
  sinceDueMs: number[]
  lookMs: number[]
  /** The duration of each fold while the load ran, ms. */
  foldMs: number[]
}

export async function benchKafkaFreshness(workspace: Workspace): Promise<BenchReport> {
  return withKafkaServices(workspace, {}, async services => report(await measure(services)))
}

async function measure(services: KafkaServices): Promise<Measured> {
  const deployment = await services.deploy('freshness')
  const { environment } = deployment
  const databases = databasesOf(readConfig(environment))
  await databases.follow(services.tables)
  await loadPlatform(services.tables, databases, platform)
  for (let index = 0; index < projectors; index++) await startProjector(deployment)
  const numbers = Array.from({ length: campaigns }, (_, index) => index * stride)
  const input: ProducerInput = { environment, campaigns: numbers }
  const producer = await startBenchProcess({
    script: 'kafka/steady-producer.ts',
    input,
    msMax: produceMsMax,
  })
  try {
    const reader = await createReader(services, databases.views, numbers)
    await load(producer, reader, { first: 0, count: warmUps, perSecond })
    reader.lookMs.length = 0
    const rest = { first: warmUps, count: pledges - warmUps, perSecond }
    const { dueAtMs, acknowledgedAtMs } = await load(producer, reader, rest)
    const seenAtMs = reader.sightings.seenAtMs.subarray(rest.first)
    return {
      foldMs: await foldTimes(services.tables, databases.ledger, dueAtMs[0] ?? 0),
      sinceAcknowledgedMs: differences(seenAtMs, acknowledgedAtMs),
      sinceDueMs: differences(seenAtMs, dueAtMs),
      lookMs: reader.lookMs,
    }
  } finally {
    await producer.end()
  }
}

interface Reader {
  sightings: Sightings
  /** The duration of each query, ms. */
  lookMs: number[]
  look(): Promise<void>
}

/** Reads the sums of the campaigns that have changed since now, before the load. Waits until all campaigns are there. */
async function createReader(
  { tables }: KafkaServices,
  views: string,
  numbers: readonly number[],
): Promise<Reader> {
  const index = new Map(numbers.map((number, at) => [campaignIdOf(number), at]))
  await until('the platform is folded', async () => {
    const query = `SELECT count() AS campaigns FROM ${views}.campaigns`
    const [row] = await tables.rows<{ campaigns: number }>({ query })
    return row?.campaigns === platform.campaigns
  })
  const before = new Map((await sums('true')).map(({ id, sum }) => [id, sum]))
  const [clock] = await tables.rows<{ now: string }>({ query: "SELECT toString(now64(3, 'UTC')) AS now" })
  const sightings = createSightings(pledges, numbers.length)
  const lookMs: number[] = []

  function sums(condition: string): Promise<{ id: string; sum: number }[]> {
    const query = `SELECT campaign_id AS id, toInt64(pledged_platform_amount * 100) AS sum
      FROM ${views}.campaigns WHERE ${condition}`
    return tables.rows({ query })
  }

  return {
    sightings,
    lookMs,
    async look() {
      const startedMs = performance.now()
      const rows = await sums(`updated_at >= toDateTime64('${clock?.now}', 3, 'UTC')`)
      lookMs.push(performance.now() - startedMs)
      const atMs = performance.timeOrigin + performance.now()
      for (const { id, sum } of rows) {
        const campaign = index.get(id)
        if (campaign !== undefined) sightings.note(campaign, sum - (before.get(id) ?? 0), atMs)
      }
    },
  }
}

/** Lets the producer send a part of the load, and polls until all of it is visible. */
async function load(
  producer: BenchProcess<unknown>,
  { look, sightings }: Reader,
  request: ProducerRequest,
): Promise<ProducerAnswer> {
  let isProduced = false
  const produced = producer.ask<ProducerAnswer>(request).finally(() => {
    isProduced = true
  })
  // It is awaited at the end. Until then a failure must not count as an unhandled rejection.
  produced.catch(() => {})
  let deadline = Number.POSITIVE_INFINITY
  while (sightings.seen < request.first + request.count) {
    await look()
    if (isProduced) deadline = Math.min(deadline, performance.now() + lastSeenMsMax)
    if (performance.now() > deadline) throw new Error(`only ${sightings.seen} pledges became visible`)
    await delay(lookPauseMs)
  }
  return produced
}

async function foldTimes(tables: Tables, ledger: string, sinceMs: number): Promise<number[]> {
  const rows = await tables.rows<{ ms: number }>({
    query: `SELECT any(elapsed_ms) AS ms FROM ${ledger}.fold_progress
      WHERE is_folded AND written_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') GROUP BY fold_id`,
    query_params: { since: Math.floor(sinceMs) },
  })
  return rows.map(({ ms }) => ms)
}

function differences(ends: Float64Array, starts: Float64Array): number[] {
  return Array.from(ends, (end, index) => end - (starts[index] ?? Number.NaN))
}

function report({ sinceAcknowledgedMs, sinceDueMs, lookMs, foldMs }: Measured): BenchReport {
  return {
    bench: 'kafka-freshness',
    notes: [
      `${perSecond} pledges/s for ${seconds} s, spread over ${campaigns} campaigns of a platform of ${platform.campaigns} campaigns and`,
      `${platform.pledges} pledges; ${projectors} projectors. From append to an answer of the view crowdfunding.campaigns that has the`,
      `pledge, for every pledge; the reader pauses ${lookPauseMs} ms after each answer. The API's caches (60 s) come on top.`,
    ],
    figures: [
      ...quantiles('from acknowledged append to visible', sinceAcknowledgedMs),
      ...quantiles('from intended append to visible', sinceDueMs),
      figureOf('one fold', 'ms', summarize(foldMs)),
      figureOf("the reader's question itself", 'ms', summarize(lookMs)),
    ],
  }
}

function quantiles(name: string, samples: number[]): Figure[] {
  return [
    figureOf(`${name}, p50`, 'ms', summarize(samples), { atMost: 400 }),
    { name: `${name}, p99`, value: quantile(samples, 0.99), unit: 'ms', target: { atMost: 800 } },
  ]
}

const lookMs = 50
const pauseMsMax = 120_000

/** Polls until a condition holds. Throws after two minutes, and names the condition. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + pauseMsMax
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited for ${pauseMsMax / 1000} s that ${what}`)
    await delay(lookMs)
  }
}
