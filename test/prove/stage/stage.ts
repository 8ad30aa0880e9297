/**
 * The stage of a world: real services, two projectors and two query processes, traffic, and readers that ask all the time. A fault
 * is played on it. Afterwards everything has to be as if there had been no fault. What happened is in the log of the recorder.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startLocalServices, withBackups } from '../../support/deployment/local-services.ts'
import { readModelOf } from '../../support/events/model.ts'
import { createKeyBook } from '../../support/faults/key-book.ts'
import { createPlace, type Place } from '../../support/faults/places.ts'
import { type ProxyObstacles, startTablesProxy, type TablesProxy } from '../../support/faults/tables-proxy.ts'
import { createTraffic } from '../../support/faults/traffic.ts'
import { kafkaAt, silent } from '../../support/kafka/topics.ts'
import { activeKeys } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { pick, type Random, randomOf } from '../../support/runner/random.ts'
import type { Entry } from '../checker/log.ts'
import { readWhole, startMirror, startReaders } from './readers.ts'
import { createRecorder, now } from './recorder.ts'
import { inBackground, noteBroken, until, untilItMoves, watchReady } from './watch.ts'

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

export type Stage = Awaited<ReturnType<typeof openStage>>

/** `shards`: makes ClickHouse a cluster of this many servers. Otherwise it is one server, and no cluster. */
export async function openStage(seed: string, log: Entry[], options: { shards?: number | undefined } = {}) {
  const closing = new AsyncDisposableStack()
  try {
    const services = closing.adopt(await startLocalServices(options), all => all.stop())
    const { shards } = services
    let single: ClickHouse = services.clickHouse
    // If it was started again, it ends after those that ask it.
    closing.defer(() => single.kill())
    const proxies: readonly TablesProxy[] = await Promise.all(
      (shards?.servers ?? [single]).map(async ({ url }) =>
        closing.adopt(await startTablesProxy(url), one => one.close()),
      ),
    )
    // A fold statement on a shard also reads what the other shards have of the batch log.
    const foldMsMax = shards ? 4_000 : 1_250
    const slowness = shards ? 4 : 2
    const own = { ...settings, PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax) }
    const { environment } = await deploy(services.addresses, own)
    const tables: Tables =
      shards?.tables ?? closing.adopt(openTables(settingsFor(single)), all => all.close())
    const databases: Databases = shards?.databases ?? defaultDatabases
    const folded: readonly Shard[] = shards?.shards ?? [{ tables, databases }]
    const kafka = { ...kafkaAt(services.addresses.kafka), retriesMax: 3 }
    const writer = closing.adopt(await openKafkaWriter(kafka, { logger: silent }), one => one.close())
    let step = 0
    const random = (...purpose: string[]): Random => randomOf(seed, step, ...purpose)
    const ports = await Promise.all([freePort(), freePort()])
    const recorder = createRecorder(
      log,
      ports.map(port => `http://127.0.0.1:${port}/api/v1`),
    )
    const traffic = closing.adopt(
      createTraffic({
        random: random('traffic'),
        writer,
        slowness,
        onSaid: events => recorder.add({ kind: 'said', at: now(), events }),
      }),
      one => one.stop(),
    )
    const keys = createKeyBook(environment.PLEDGEVIEW_KEY_PEPPER ?? '')
    const issued = Array.from({ length: readerAccounts * keysOfAccount }, (_, n) =>
      keys.issue(`readers-${n % readerAccounts}`),
    )
    await traffic.say(issued.map(({ event }) => event))

    const placeOf = (command: 'projector' | 'query', more: Readonly<Record<string, string>>): Place =>
      closing.adopt(createPlace(command, { ...environment, ...more }), async one => void (await one.stop()))
    const projectors: Place[] = []
    const newPlace = (): Place => {
      const urls = proxies.map(({ url }) => url)
      const place = placeOf('projector', {
        PLEDGEVIEW_CLICKHOUSE_URL: urls[0] ?? '',
        ...(shards && { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: urls.join(',') }),
      })
      projectors.push(place)
      return place
    }
    const places = [newPlace(), newPlace()] as const
    // On a cluster every shard checks the rights of the person who asks.
    const asReader = shards && {
      PLEDGEVIEW_CLICKHOUSE_USER: 'pledgeview_query',
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: '',
    }
    const queries = ports.map(port => placeOf('query', { ...asReader, PLEDGEVIEW_PORT: String(port) }))
    await Promise.all([...places, ...queries].map(one => one.ready()))

    const credentials = issued.map(one => one.credentials)
    const common = { processes: queries.length, recorder, traffic, keys: credentials, random, slowness }

    /** Answers of both processes, each asked until its answer suffices. Default: any answer does. */
    async function untilBoth(
      path: string,
      isEnough: (headers: Record<string, string>) => boolean = () => true,
      key?: Credentials,
    ): Promise<void> {
      const common = { reader: 'the runner', path, expected: [200, 401, 500] }
      for (const process of queries.keys()) {
        await until(async () => {
          const own = key ?? pick(Math.random, credentials)
          const asked = await recorder.ask({ ...common, process, credentials: own })
          return asked?.status === 200 && isEnough(asked.headers)
        }, 300)
      }
    }

    /** Resolves when both processes have read what is in the tables now: an answer with a later watermark has all of it. */
    function untilShown(): Promise<void> {
      const moment = Date.now()
      return untilBoth('/projects?limit=1', headers => Date.parse(headers['x-data-as-of'] ?? '') > moment)
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

    /** Resolves when, from now on, every shard was folded. */
    async function untilAllMove(): Promise<void> {
      await Promise.all(folded.map(shard => untilItMoves(shard.tables, tables)))
    }

    /** Pauses the traffic until tables and keys are what the events say, and reads everything then. With `staysPaused`, nothing is said afterwards. */
    async function settled({ staysPaused = false } = {}): Promise<void> {
      await traffic.pause()
      try {
        // If it does not get there, the answers that are read now say what is wrong.
        const failure: unknown = await untilProjected().catch(error => error)
        await untilShown()
        const from = now()
        await delay(forgottenMs)
        for (const process of queries.keys())
          await readWhole({ ...common, random: random('audit'), reader: 'the audit', process })
        recorder.add({ kind: 'quiet', from, to: now() })
        if (failure !== undefined) throw failure
      } finally {
        // Also after a failure: the faults that follow wait for traffic.
        if (!staysPaused) traffic.resume()
      }
    }

    traffic.start()
    // The key ring follows a key within two seconds of its fold, or later on a busy machine.
    await untilBoth('/stats')
    await settled()
    const mirrors = (['loop', 'client'] as const).map(kind =>
      closing.adopt(startMirror(kind, common), one => one.stop()),
    )
    closing.defer(inBackground(signal => startReaders(common, signal)))
    closing.defer(inBackground(signal => watchReady(queries, recorder, signal)))

    return {
      services,
      environment,
      queries,
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
      untilShown,
      untilAllMove,
      stop: () => closing.disposeAsync(),

      /** Plays a fault, and waits until everything is settled. */
      async play(fault: () => Promise<void>): Promise<void> {
        step++
        await fault()
        await untilAllMove()
        await settled()
        const ended = [...places, ...queries].find(one => one.hasEnded())
        if (ended) throw new Error(`a process ended by itself: ${ended.output().slice(-2_000)}`)
      },

      /** Delays or changes what the projectors send to ClickHouse, or only to this server of a cluster. Returns what ends it. */
      obstruct(obstacles: ProxyObstacles, shard?: number): () => void {
        const own = shard === undefined ? proxies : proxies.slice(shard, shard + 1)
        const releases = own.map(proxy => proxy.obstruct(obstacles))
        return () => {
          for (const release of releases) release()
        }
      },

      async noteBroken(): Promise<void> {
        for (const [n, place] of projectors.entries()) await noteBroken(`projector ${n}`, place, recorder)
        for (const [n, place] of queries.entries()) await noteBroken(`query ${n}`, place, recorder)
      },

      /** The server that runs now; on a cluster, that of a shard. */
      clickHouse: (shard = 0): ClickHouse => shards?.servers[shard] ?? single,
      /** On the same directory and port, after it was killed. */
      async restartClickHouse(shard = 0): Promise<void> {
        if (shards) return shards.restart(shard)
        const { directory, url } = services.clickHouse
        single = await startClickHouse({ directory, httpPort: Number(new URL(url).port), ...withBackups })
      },
    }
  } catch (cause) {
    await closing.disposeAsync()
    throw cause
  }
}
