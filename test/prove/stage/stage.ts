/**
 * The stage of a world: real services, two projectors and two query processes, traffic, and readers that ask all the time. A fault
 * is played on it. Afterwards everything has to be as if there had been no fault. What happened is in the log of the recorder.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { EventWriter } from '../../../services/log/port.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import {
  type LocalServices,
  startLocalServices,
  withBackups,
} from '../../support/deployment/local-services.ts'
import { readModelOf } from '../../support/events/model.ts'
import { createKeyBook, type KeyBook } from '../../support/faults/key-book.ts'
import { createPlace, type Place } from '../../support/faults/places.ts'
import { startTablesProxy, type TablesProxy } from '../../support/faults/tables-proxy.ts'
import { createTraffic, type Traffic } from '../../support/faults/traffic.ts'
import { silent } from '../../support/kafka/topics.ts'
import { activeKeys, column } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { type Random, randomOf } from '../../support/runner/random.ts'
import { type Mirror, readWhole, startClientMirror, startLoopMirror, startReaders } from './readers.ts'
import { createRecorder, now, type Recorder } from './recorder.ts'
import { metricsOf, until, watchReady } from './watch.ts'

/** How soon the group removes a projector that does not answer, ms. */
export const sessionMs = 2_000
/** How long a response may be served from the cache, ms. */
export const cacheMs = 1_000
/** How long a statement waits for a silent ClickHouse, ms. */
export const silenceMs = 6_000

// Small times and batches: much happens in a short world, and a fault can fall between any two steps.
const settings = {
  PLEDGEVIEW_KAFKA_SESSION_MS: String(sessionMs),
  PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX: String(silenceMs),
  // Nothing stays away for good. On a busy machine it may take longer than a minute until ClickHouse answers again.
  PLEDGEVIEW_RETRY_MS_MAX: '600000',
  // Readers try wrong keys all the time. They must not use up what a reader needs that waits until a new key is known.
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
// The age of an answer is rounded up to seconds: after this time, all is read anew.
const forgottenMs = cacheMs + 1_100

export interface StageOptions {
  /** Makes ClickHouse a cluster of this many servers. Default: one server, and no cluster. */
  shards?: number | undefined
}

export type Stage = Awaited<ReturnType<typeof openStage>>

export async function openStage(seed: string, options: StageOptions = {}) {
  const closing: (() => Promise<unknown>)[] = []
  const closed = <T>(part: T, close: (part: T) => Promise<unknown>): T => {
    closing.unshift(() => close(part))
    return part
  }
  async function stop(): Promise<void> {
    const failures: unknown[] = []
    for (const close of closing.splice(0)) await close().catch(error => failures.push(error))
    if (failures.length > 0) throw failures[0]
  }

  try {
    const services: LocalServices = closed(await startLocalServices(options), all => all.stop())
    const { shards } = services
    let clickHouse: ClickHouse = services.clickHouse
    const proxies: readonly TablesProxy[] = await Promise.all(
      (shards?.servers ?? [clickHouse]).map(async ({ url }) =>
        closed(await startTablesProxy(url), one => one.close()),
      ),
    )
    // A fold statement on a shard also reads what the other shards have of the batch log.
    const foldMsMax = shards ? 4_000 : 1_250
    const slowness = shards ? 4 : 2
    const own = { ...settings, PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax) }
    const deployment = closed(await deploy(services.addresses, own), all => all.stop())
    const { environment } = deployment
    const tables: Tables = shards?.tables ?? closed(openTables(settingsFor(clickHouse)), all => all.close())
    const databases: Databases = shards?.databases ?? defaultDatabases
    const folded: readonly Shard[] = shards?.shards ?? [{ tables, databases }]
    const writer = closed(await openWriter(services.addresses.kafka), one => one.close())
    let step = 0
    const random = (...purpose: string[]): Random => randomOf(seed, step, ...purpose)
    const ports = await Promise.all([freePort(), freePort()])
    const recorder: Recorder = createRecorder(() => ports.map(port => `http://127.0.0.1:${port}/api/v1`))
    const onSaid: Parameters<typeof createTraffic>[0]['onSaid'] = events =>
      recorder.add({ kind: 'said', at: now(), events })
    const traffic: Traffic = closed(
      createTraffic({ random: random('traffic'), writer, slowness, onSaid }),
      one => one.stop(),
    )
    const keys: KeyBook = createKeyBook(environment.PLEDGEVIEW_KEY_PEPPER ?? '')
    const issued = Array.from({ length: readerAccounts * keysOfAccount }, (_, n) =>
      keys.issue(`readers-${n % readerAccounts}`),
    )
    await traffic.say(issued.map(({ event }) => event))

    const behindProxies = {
      ...environment,
      PLEDGEVIEW_CLICKHOUSE_URL: proxies[0]?.url ?? '',
      ...(shards && { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: proxies.map(({ url }) => url).join(',') }),
    }
    const projectors: Place[] = []
    const newPlace = (): Place => {
      const place = closed(createPlace('projector', behindProxies), one => one.stop())
      projectors.push(place)
      return place
    }
    const places = [newPlace(), newPlace()] as const
    // On a cluster every shard checks the rights of the person who asks.
    const asReader = shards
      ? { PLEDGEVIEW_CLICKHOUSE_USER: 'pledgeview_query', PLEDGEVIEW_CLICKHOUSE_PASSWORD: '' }
      : {}
    const queries: readonly Place[] = ports.map(port =>
      closed(
        createPlace('query', {
          ...environment,
          ...asReader,
          PLEDGEVIEW_PORT: String(port),
        }),
        one => one.stop(),
      ),
    )
    await Promise.all([...places, ...queries].map(one => one.ready()))

    const serverOf = (shard = 0): ClickHouse => shards?.servers[shard] ?? clickHouse
    const credentials = issued.map(one => one.credentials)
    const common = { processes: queries.length, recorder, traffic, keys: credentials, random, slowness }

    /** Answers of both processes, each asked until its answer suffices. */
    async function untilBoth(
      path: string,
      isEnough: (headers: Record<string, string>) => boolean,
    ): Promise<void> {
      for (const process of queries.keys()) {
        await until(async () => {
          const key = credentials[Math.floor(Math.random() * credentials.length)]
          const asked = await recorder.ask({
            reader: 'the runner',
            process,
            path,
            ...(key && { credentials: key }),
            expected: [200, 401, 500],
          })
          return asked?.status === 200 && isEnough(asked.headers)
        }, 300)
      }
    }

    /** Resolves when the tables are what was said. */
    function untilProjected(): Promise<void> {
      const expected = expectedReading(readModelOf(traffic.events()))
      return until(
        async () =>
          isDeepStrictEqual(await readViews(tables, databases), expected) &&
          isDeepStrictEqual(await activeKeys(tables, databases), keys.active()),
        // Each look reads all views.
        500,
      )
    }

    /** Pauses the traffic until tables and keys are what the events say, and reads everything then. With `staysPaused`, nothing is said afterwards. */
    async function settled({ staysPaused = false } = {}): Promise<void> {
      await traffic.pause()
      try {
        // If it does not get there, the answers that are read now say what is wrong.
        const failure: unknown = await untilProjected().catch(error => error)
        // An answer with a later watermark has all of that.
        const settledAt = Date.now()
        await untilBoth('/projects?limit=1', headers => Date.parse(headers['x-data-as-of'] ?? '') > settledAt)
        const from = now()
        await delay(forgottenMs)
        for (const process of queries.keys()) {
          await readWhole({
            recorder,
            keys: credentials,
            random: random('audit'),
            reader: 'the audit',
            process,
          })
        }
        recorder.add({ kind: 'quiet', from, to: now() })
        if (failure !== undefined) throw failure
      } finally {
        // Also after a failure: the faults that follow wait for traffic.
        if (!staysPaused) traffic.resume()
      }
    }

    traffic.start()
    // The key ring follows a key within two seconds of its fold, or later on a busy machine.
    await untilBoth('/stats', () => true)
    await settled()
    const mirrors: readonly Mirror[] = [startLoopMirror(common), startClientMirror(common)].map(one =>
      closed(one, all => all.stop()),
    )
    closed(startReaders(common), end => end())
    closed(watchReady(queries, recorder), end => end())

    return {
      services,
      environment,
      queries,
      proxies,
      /** Between the projectors and ClickHouse; on a cluster, its first shard. */
      proxy: proxies[0] as TablesProxy,
      /** The tables themselves, without the proxy. On a cluster: the whole tables. */
      tables,
      databases,
      folded,
      foldMsMax,
      traffic,
      keys,
      recorder,
      mirrors,
      places,
      newPlace,
      random,
      settled,
      untilProjected,
      untilBoth,
      stop,

      /** Plays a fault, and waits until everything is settled. */
      async play(fault: () => Promise<void>): Promise<void> {
        step++
        await fault()
        await settled()
        const ends = [...places, ...queries]
          .filter(one => one.hasEnded())
          .map(one => one.output().slice(-2_000))
        if (ends.length > 0) throw new Error(`processes ended by themselves: ${ends.join('\n')}`)
      },

      /** Notes which assertions of its own each process has found broken: the metric of those that run, and the log of all. */
      async noteBroken(): Promise<void> {
        const all = [...projectors.entries()].map(([n, place]) => ({ place, process: `projector ${n}` }))
        all.push(...[...queries.entries()].map(([n, place]) => ({ place, process: `query ${n}` })))
        for (const { place, process } of all) {
          const logged = place.output().matchAll(/"invariant":"([^"]+)"/g)
          const metrics = place.hasEnded() ? '' : await metricsOf(place)
          const counted = metrics.matchAll(/^pledgeview_invariants_broken_total\{name="([^"]+)"\} [1-9]/gm)
          const names = new Set([...logged, ...counted].map(([, name = '']) => name))
          recorder.add({ kind: 'broken', process, names: [...names] })
        }
      },

      /** Revokes a key, and notes when it was asked for and when the ledger has it. */
      async revoke(key: string, ask: () => Promise<unknown>): Promise<void> {
        const askedAt = now()
        await ask()
        // Not the view of revoked keys: it leaves a key out as soon as the fold has it, which may be before it is asked here.
        const query = `SELECT api_key AS value FROM ${databases.base}.api_key_ledger FINAL
                       WHERE api_key = '${key}' AND NOT is_unrevoked`
        await until(async () => (await column(tables, query).catch(() => [])).length > 0)
        recorder.add({ kind: 'revoked', askedAt, at: now(), key })
      },

      /** Kills the server; on a cluster, that of a shard. */
      killClickHouse: (shard?: number) => serverOf(shard).kill(),
      /** On the same directory and port. */
      async restartClickHouse(shard = 0): Promise<void> {
        if (shards) return shards.restart(shard)
        const { directory, url } = services.clickHouse
        const again = await startClickHouse({
          directory,
          httpPort: Number(new URL(url).port),
          ...withBackups,
        })
        clickHouse = again
        // After those that ask it.
        closing.push(() => again.stop())
      },
      signalClickHouse: (signal: 'SIGSTOP' | 'SIGCONT', shard?: number) => serverOf(shard).signal(signal),
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

function openWriter(address: string): Promise<EventWriter> {
  const names = { brokers: [address], clientId: 'prove', topicPrefix: '' }
  return openKafkaWriter({ ...names, retriesMax: 3 }, { logger: silent })
}
