/**
 * Freshness: the time from a change's append until it can be read, at a steady rate of events, with two projectors.
 *
 * End to end: a reader asks the table behind the API and the views, in a loop, for one campaign in twenty. To ask a view for all of them
 * takes more of the machine than the fold. A pledge is visible when an answer contains it. The time counts from the moment at which the event
 * was due. So it includes the delays of a slow producer (coordinated omission).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { databasesOf } from '../../../services/distributed/settings.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { type Deployment, deploy } from '../../support/deployment/deployment.ts'
import { localServices, startLocalServices } from '../../support/deployment/local-services.ts'
import type { ServiceProcess } from '../../support/deployment/service-process.ts'
import { type BenchProcess, startBenchProcess } from '../bench-process.ts'
import { untilHolds } from '../platform/fold.ts'
import { campaignIdOf, loadPlatform } from '../platform/platform.ts'
import { type BenchReport, figureOf } from '../report.ts'
import { quantile, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { createSightings, marksPerCampaign, type Sightings } from './marks.ts'
import type { ProducerAnswer, ProducerInput, ProducerRequest } from './steady-producer.ts'

const platform = { campaigns: 100_000, pledges: 2_500_000 }
const perSecond = 2_000
const warmUpSeconds = 5
const seconds = 30
const projectors = 2
// Of the campaigns that get pledges, the reader watches one in so many.
const watchedEvery = 20
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
  sinceDueMs: number[]
  /** How old the watermark was at each answer, by ClickHouse's clock: the age of `X-Data-As-Of` of a list that was not cached. */
  watermarkMs: number[]
  /** Of the folds while the load ran. */
  folds: Folds
}

interface Folds {
  count: number
  seconds: number
}

/** Needs Kafka and Redis. Nothing outlives the bench: the services keep their data in the workspace. */
export async function benchKafkaFreshness(workspace: Workspace): Promise<BenchReport> {
  process.env.TMPDIR = workspace.directory('services')
  const requirement = await localServices()
  if (!requirement.isMet) throw new Error(requirement.reason)
  const services = await startLocalServices()
  const tables = openTables(settingsFor(services.clickHouse))
  let deployment: Deployment | undefined
  try {
    deployment = await deploy(services.addresses)
    return report(await measure(deployment, tables))
  } finally {
    await deployment?.stop()
    await tables.close()
    await services.stop()
  }
}

async function measure(deployment: Deployment, tables: Tables): Promise<Measured> {
  const { environment } = deployment
  const databases = databasesOf(readConfig(environment))
  await databases.follow(tables)
  await loadPlatform(tables, databases, platform)
  const running: ServiceProcess[] = []
  for (let index = 0; index < projectors; index++) running.push(await deployment.startProjector())
  const numbers = Array.from({ length: campaigns }, (_, index) => index * stride)
  const input: ProducerInput = { environment, campaigns: numbers }
  const producer = await startBenchProcess({
    script: 'kafka/steady-producer.ts',
    input,
    msMax: produceMsMax,
  })
  try {
    const reader = await createReader(tables, databases, numbers)
    await load(producer, reader, { first: 0, count: warmUps, perSecond })
    reader.watermarkMs.length = 0
    const before = await foldsOf(running)
    const rest = { first: warmUps, count: pledges - warmUps, perSecond }
    const { dueAtMs } = await load(producer, reader, rest)
    const seenAtMs = reader.sightings.seenAtMs.subarray(rest.first)
    const after = await foldsOf(running)
    return {
      folds: { count: after.count - before.count, seconds: after.seconds - before.seconds },
      sinceDueMs: differences(seenAtMs, dueAtMs),
      watermarkMs: reader.watermarkMs,
    }
  } finally {
    await producer.end()
  }
}

interface Reader extends Pick<Measured, 'watermarkMs'> {
  sightings: Sightings
  look(): Promise<void>
  /** How many of the first so many pledges are of campaigns that it watches. */
  watchedOf(pledges: number): number
}

/** Reads the sums of the campaigns that it watches. Waits until all campaigns are there, and the days before them. */
async function createReader(
  tables: Tables,
  { base, read, views }: Databases,
  numbers: readonly number[],
): Promise<Reader> {
  const index = new Map(numbers.map((number, at) => [campaignIdOf(number), at]))
  const query = `SELECT (SELECT count() FROM ${views}.campaigns) = {campaigns:UInt64}
        AND (SELECT max(toUnixTimestamp64Milli(derived)) FROM ${base}.history_marks) > 0 AS holds`
  await untilHolds(tables, { query, query_params: { campaigns: platform.campaigns } })
  const watched = numbers.filter((_, at) => at % watchedEvery === 0).map(campaignIdOf)
  const before = new Map((await sums()).map(({ id, sum }) => [id, sum]))
  const sightings = createSightings(pledges, numbers.length)
  const watermarkMs: number[] = []

  function sums(): Promise<{ id: string; sum: number; age: number }[]> {
    const query = `SELECT campaign_id AS id, toInt64(pledged_platform_amount * 100) AS sum,
        toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli((SELECT reached FROM ${read}.watermark)) AS age
      FROM ${read}.campaigns FINAL WHERE campaign_id IN {watched:Array(String)}`
    return tables.rows({ query, query_params: { watched } })
  }

  return {
    sightings,
    watermarkMs,
    async look() {
      const rows = await sums()
      watermarkMs.push(rows[0]?.age ?? 0)
      const atMs = performance.timeOrigin + performance.now()
      for (const { id, sum } of rows) {
        const campaign = index.get(id)
        if (campaign !== undefined) sightings.note(campaign, sum - (before.get(id) ?? 0), atMs)
      }
    },
    watchedOf(pledges) {
      const rounds = Math.floor(pledges / numbers.length)
      return rounds * watched.length + Math.ceil((pledges % numbers.length) / watchedEvery)
    },
  }
}

/** Lets the producer send a part of the load, and polls until all of it is visible. */
async function load(
  producer: BenchProcess<unknown>,
  { look, sightings, watchedOf }: Reader,
  request: ProducerRequest,
): Promise<ProducerAnswer> {
  let isProduced = false
  const produced = producer.ask<ProducerAnswer>(request).finally(() => {
    isProduced = true
  })
  // It is awaited at the end. Until then a failure must not count as an unhandled rejection.
  produced.catch(() => {})
  let deadline = Number.POSITIVE_INFINITY
  while (sightings.seen < watchedOf(request.first + request.count)) {
    await look()
    if (isProduced) deadline = Math.min(deadline, performance.now() + lastSeenMsMax)
    if (performance.now() > deadline) throw new Error(`only ${sightings.seen} pledges became visible`)
    await delay(lookPauseMs)
  }
  return produced
}

/** Of all projectors together: only the one that leads folds. */
async function foldsOf(projectors: readonly ServiceProcess[]): Promise<Folds> {
  const sum = { count: 0, seconds: 0 }
  for (const { opsUrl } of projectors) {
    const text = await (await fetch(`${opsUrl}/metrics`)).text()
    sum.count += Number(/^pledgeview_fold_seconds_count (\S+)$/m.exec(text)?.[1])
    sum.seconds += Number(/^pledgeview_fold_seconds_sum (\S+)$/m.exec(text)?.[1])
  }
  return sum
}

/** Without the pledges that the reader did not watch. */
function differences(ends: Float64Array, starts: Float64Array): number[] {
  return Array.from(ends, (end, index) => end - (starts[index] ?? Number.NaN)).filter(Number.isFinite)
}

function report({ sinceDueMs, watermarkMs, folds }: Measured): BenchReport {
  return {
    bench: 'kafka',
    notes: [
      `${perSecond} pledges/s for ${seconds} s, spread over ${campaigns} campaigns of a platform of ${platform.campaigns} campaigns and`,
      `${platform.pledges} pledges; ${projectors} projectors. From append to an answer of the table of campaigns that has the`,
      `pledge, for one campaign in ${watchedEvery}; the reader pauses ${lookPauseMs} ms after each answer. The API's caches (60 s) come on top.`,
    ],
    figures: [
      figureOf('from append to visible, p50', 'ms', summarize(sinceDueMs), { atMost: 400 }),
      {
        name: 'from append to visible, p99',
        value: quantile(sinceDueMs, 0.99),
        unit: 'ms',
        target: { atMost: 800 },
      },
      figureOf('age of the watermark', 'ms', summarize(watermarkMs), { atMost: 1_000 }),
      { name: 'one fold, mean', value: (1_000 * folds.seconds) / folds.count, unit: 'ms' },
    ],
  }
}
