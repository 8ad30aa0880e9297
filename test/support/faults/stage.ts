/**
 * The stage of the fault suite: real services, two projectors and two query processes, traffic, and readers that ask all the
 * time. A fault is played on it. Afterwards everything has to be as if there had been no fault.
 */
import { expect, vi } from 'vitest'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { EventWriter } from '../../../services/log/port.ts'
import { projectListBodySchema } from '../../../services/query/endpoints/projects.ts'
import { openTables } from '../../../services/tables/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../clickhouse/clickhouse.ts'
import { deploy } from '../deployment/deployment.ts'
import { type LocalServices, startLocalServices } from '../deployment/local-services.ts'
import type { ServiceProcess } from '../deployment/service-process.ts'
import { readModelOf } from '../events/model.ts'
import { silent } from '../kafka/topics.ts'
import { activeKeys } from '../projector/fold-records.ts'
import { expectedReading, readViews } from '../projector/model-tables.ts'
import { keyHeaders } from '../query/app.ts'
import { type Random, randomOf } from '../runner/random.ts'
import { type ApiClient, createApiClient } from './api-client.ts'
import { expectedWalk, type TimelessProject, timeless } from './api-projects.ts'
import { createJudge } from './judge.ts'
import { createKeyBook, type KeyBook } from './key-book.ts'
import { type Mirror, startMirror } from './mirror.ts'
import { createPlace, type Place } from './places.ts'
import { startReaders } from './readers.ts'
import { startTablesProxy, type TablesProxy } from './tables-proxy.ts'
import { createTraffic, type Traffic } from './traffic.ts'

/** How soon the group removes a projector that does not answer, ms. */
export const sessionMs = 2_000
/** How long a fold statement may take, ms, also on a machine that is busy with other suites. */
export const foldMsMax = 1_250
/** How long a response may be served from the cache, ms. */
export const cacheMs = 1_000
/** How long a statement waits for a silent ClickHouse, ms. */
export const silenceMs = 6_000

// Small times and batches: much happens in a short suite, and a fault can fall between any two steps.
const settings = {
  PLEDGEVIEW_KAFKA_SESSION_MS: String(sessionMs),
  PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax),
  PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX: String(silenceMs),
  // Nothing stays away for good. On a busy machine it may take longer than a minute until ClickHouse answers again.
  PLEDGEVIEW_RETRY_MS_MAX: '600000',
  // Readers try wrong keys all the time. They must not use up what a test needs that waits until a new key is known.
  PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: '1000000',
  PLEDGEVIEW_CACHE_MS: String(cacheMs),
  PLEDGEVIEW_STATS_CACHE_MS: String(cacheMs),
  PLEDGEVIEW_BATCH_RECORDS_MAX: '200',
  PLEDGEVIEW_BATCH_MS_MAX: '50',
  PLEDGEVIEW_REJECT_WINDOW_RECORDS: '1000',
  PLEDGEVIEW_LOG_LEVEL: 'warn',
}
// Readers make about 60 requests a second, and a key may make 120 a minute.
const readerAccounts = 20
const keysOfAccount = 3
// Only a hang takes this long: a campaign that a busy machine could not fold, not even alone, is tried again later and later.
const settledMsMax = 180_000

export type Figures = Readonly<Record<string, string | number>>

export interface Stage {
  readonly services: LocalServices
  /** For processes and commands that are not behind the proxy. */
  readonly environment: Readonly<Record<string, string>>
  readonly queries: readonly ServiceProcess[]
  readonly apiUrls: readonly string[]
  /** Between the projectors and ClickHouse; on a cluster, its first shard. */
  readonly proxy: TablesProxy
  /** Between the projectors and each shard. */
  readonly proxies: readonly TablesProxy[]
  /** The tables themselves, without the proxy. On a cluster: the whole tables. */
  readonly tables: Tables
  readonly databases: Databases
  /** What is folded: the tables themselves, or each shard. */
  readonly folded: readonly Shard[]
  readonly traffic: Traffic
  readonly keys: KeyBook
  readonly client: ApiClient
  readonly mirror: Mirror
  readonly places: readonly [Place, Place]
  /** Starts an additional projector. */
  newPlace(): Place
  random(...purpose: string[]): Random
  /** Plays a fault, waits until everything is settled, and prints its figures. */
  play(name: string, fault: () => Promise<Figures>): Promise<void>
  /** While this runs, the query processes may answer 500. */
  withoutClickHouse<T>(work: () => Promise<T>): Promise<T>
  /** Kills the server; on a cluster, that of a shard. */
  killClickHouse(shard?: number): Promise<void>
  /** On the same directory and port. */
  restartClickHouse(shard?: number): Promise<void>
  signalClickHouse(signal: 'SIGSTOP' | 'SIGCONT', shard?: number): void
  /** Pauses the traffic until the tables and keys are what the events say. With `staysPaused`, nothing is said afterwards. */
  settled(options?: { staysPaused?: boolean }): Promise<void>
  /** The rows of all pages, from one query process. */
  walk(apiUrl: string): Promise<TimelessProject[]>
  /** What `rows` has to return. */
  expectedWalk(): TimelessProject[]
  stop(): Promise<void>
}

export interface StageOptions {
  /** Makes ClickHouse a cluster of this many servers. Default: one server, and no cluster. */
  shards?: number
  /** Settings of the processes that differ from those of the other fault suites. */
  settings?: Readonly<Record<string, string>>
  /** How many times slower traffic and readers are. Default: 1. */
  slowness?: number
}

export async function openStage(seed: string, options: StageOptions = {}): Promise<Stage> {
  const closing: (() => Promise<unknown>)[] = []
  const closed = <T>(part: T, close: (part: T) => Promise<unknown>): T => {
    closing.unshift(() => close(part))
    return part
  }
  async function stop(): Promise<void> {
    for (const close of closing) await close()
  }

  try {
    const services = closed(await startLocalServices(options), all => all.stop())
    const { shards } = services
    let clickHouse: ClickHouse = services.clickHouse
    const proxies = await Promise.all(
      (shards?.servers ?? [clickHouse]).map(async ({ url }) =>
        closed(await startTablesProxy(url), one => one.close()),
      ),
    )
    const proxy = proxies[0] as TablesProxy
    const deployment = closed(await deploy(services.addresses, { ...settings, ...options.settings }), all =>
      all.stop(),
    )
    const tables = shards?.tables ?? closed(openTables(settingsFor(clickHouse)), all => all.close())
    const databases: Databases = shards?.databases ?? defaultDatabases
    const folded: readonly Shard[] = shards?.shards ?? [{ tables, databases }]
    const writer = closed(await openWriter(services.addresses.kafka), one => one.close())
    const random = (...purpose: string[]) => randomOf(seed, ...purpose)
    const traffic = closed(
      createTraffic({ random: random('traffic'), writer, slowness: options.slowness }),
      one => one.stop(),
    )
    const keys = createKeyBook(deployment.environment.PLEDGEVIEW_KEY_PEPPER ?? '')
    const issued = Array.from({ length: readerAccounts * keysOfAccount }, (_, n) =>
      keys.issue(`readers-${n % readerAccounts}`),
    )
    await traffic.say(issued.map(({ event }) => event))

    const behindProxy = {
      environment: {
        ...deployment.environment,
        PLEDGEVIEW_CLICKHOUSE_URL: proxy.url,
        ...(shards && { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: proxies.map(({ url }) => url).join(',') }),
      },
    }
    // On a cluster every shard checks the rights of the person who asks.
    const asReader = shards
      ? { PLEDGEVIEW_CLICKHOUSE_USER: 'pledgeview_query', PLEDGEVIEW_CLICKHOUSE_PASSWORD: '' }
      : {}
    const newPlace = () => closed(createPlace('projector', behindProxy.environment), one => one.stop())
    const places = [newPlace(), newPlace()] as const
    const queries = await Promise.all([deployment.startQuery(asReader), deployment.startQuery(asReader)])
    await Promise.all(places.map(one => one.ready()))
    const apiUrls = queries.map(({ apiUrl }) => apiUrl)

    const serverOf = (shard = 0): ClickHouse => shards?.servers[shard] ?? clickHouse

    let awaySince: number | undefined
    const absences: { from: number; to: number }[] = []
    const client = createApiClient(
      (from, to) =>
        (awaySince !== undefined && awaySince <= to) ||
        absences.some(absence => absence.from <= to && absence.to >= from),
    )
    const judge = createJudge(traffic)
    const credentials = issued.map(one => one.credentials)
    let walkedPages = 0
    const common = { apiUrls, client, judge, keys: credentials, slowness: options.slowness ?? 1 }

    async function settled({ staysPaused = false } = {}): Promise<void> {
      await traffic.pause()
      const expected = expectedReading(readModelOf(traffic.events()))
      try {
        await vi.waitFor(
          async () => {
            expect(await readViews(tables, databases)).toEqual(expected)
            expect(await activeKeys(tables, databases)).toEqual(keys.active())
          },
          // Each look reads all views.
          { timeout: settledMsMax, interval: 500 },
        )
      } finally {
        // Also after a failure: the tests that follow wait for traffic.
        if (!staysPaused) traffic.resume()
      }
    }

    traffic.start()
    await settled()
    // The key ring follows a key within two seconds of its fold, or later on a busy machine.
    await vi.waitFor(
      async () => {
        const answers = await Promise.all(
          apiUrls.map(url =>
            fetch(`${url}/stats`, { headers: keyHeaders(credentials[0] ?? { key: '', secret: '' }) }),
          ),
        )
        expect(answers.map(({ status }) => status)).toEqual([200, 200])
      },
      { timeout: 60_000, interval: 100 },
    )
    const mirror = closed(startMirror(common), one => one.stop())
    closed(startReaders({ ...common, traffic, random: n => random('reader', String(n)) }), all => all.stop())

    return {
      services,
      environment: deployment.environment,
      queries,
      apiUrls,
      proxy,
      proxies,
      tables,
      databases,
      folded,
      traffic,
      keys,
      client,
      mirror,
      places,
      newPlace,
      random,
      settled,
      stop,

      async play(name, fault) {
        const before = { records: traffic.records(), statuses: client.statuses(), at: performance.now() }
        const figures = await fault()
        const unsettled = await settled().then(
          () => undefined,
          error => error,
        )
        expect(client.faults()).toEqual([])
        if (unsettled) throw unsettled
        const ends = places.filter(one => one.hasEnded()).map(one => one.output().slice(-2_000))
        expect(ends, 'projectors that ended by themselves').toEqual([])
        const records = traffic.records() - before.records
        const seconds = Math.round((performance.now() - before.at) / 1_000)
        const all = { ...figures, records, ...countsSince(before.statuses, client.statuses()) }
        const line = Object.entries(all).map(([what, count]) => `${count} ${what}`)
        console.log(`${name}: ${line.join(', ')}; ${seconds} s`)
      },

      async withoutClickHouse(work) {
        awaySince = Date.now()
        try {
          return await work()
        } finally {
          absences.push({ from: awaySince, to: Date.now() })
          awaySince = undefined
        }
      },

      killClickHouse: async shard => serverOf(shard).kill(),
      async restartClickHouse(shard = 0) {
        if (shards) return shards.restart(shard)
        const { directory, url } = services.clickHouse
        clickHouse = closed(await startClickHouse({ directory, httpPort: Number(new URL(url).port) }), one =>
          one.stop(),
        )
      },
      signalClickHouse: (signal, shard) => serverOf(shard).signal(signal),

      async walk(apiUrl) {
        const rows: TimelessProject[] = []
        for (let offset = 0; ; offset += 100) {
          const url = `${apiUrl}/projects?limit=100&offset=${offset}`
          // One key could make only a few walks a minute, beside the readers.
          const key = credentials[walkedPages++ % credentials.length] ?? noCredentials
          const asked = await client.ask(url, [200], { headers: keyHeaders(key) })
          const { data, pagination } = projectListBodySchema.parse(asked?.body)
          rows.push(...data.map(timeless))
          if (!pagination.has_more) return rows
        }
      },

      expectedWalk: () => expectedWalk(traffic.events()),
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

const noCredentials = { key: '', secret: '' }

function openWriter(address: string): Promise<EventWriter> {
  const names = { brokers: [address], clientId: 'fault-suite', topicPrefix: '' }
  return openKafkaWriter({ ...names, retriesMax: 3 }, { logger: silent })
}

function countsSince(
  before: Readonly<Record<number, number>>,
  now: Readonly<Record<number, number>>,
): Figures {
  const counts = Object.entries(now).map(
    ([status, count]) => [status, count - (before[Number(status)] ?? 0)] as const,
  )
  const requests = counts.reduce((sum, [, count]) => sum + count, 0)
  const seen = counts.filter(([, count]) => count > 0).map(([status, count]) => `${status}: ${count}`)
  return { requests, [`(${seen.join(', ')})`]: 'statuses' }
}
