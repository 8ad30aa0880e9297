/**
 * The stage of a world: real services, two projectors and two query processes, traffic, and readers that ask all the time. A fault
 * is played on it. Afterwards everything has to be as if there had been no fault. What happened is in the log of the recorder.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import type { ShardUser } from '../../support/clickhouse/shards.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startLocalServices, withBackups } from '../../support/deployment/local-services.ts'
import { readModelOf } from '../../support/events/model.ts'
import { createKeyBook } from '../../support/faults/key-book.ts'
import { createPlace, type Place } from '../../support/faults/places.ts'
import { type ProxyObstacles, startTablesProxy } from '../../support/faults/tables-proxy.ts'
import { createTraffic } from '../../support/faults/traffic.ts'
import { kafkaAt, silent } from '../../support/kafka/topics.ts'
import { activeKeys } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { pick, type Random, randomOf } from '../../support/runner/random.ts'
import type { Entry } from '../checker/log.ts'
import { readWhole, startMirror, startReaders } from './readers.ts'
import { createRecorder, now } from './recorder.ts'
import { batchesIn, currentOf, foldsIn, until, watchReady } from './watch.ts'

/** How soon the group removes a projector that does not answer, ms. */
export const sessionMs = 2_000
/** How long a response may be served from the cache, ms. */
export const cacheMs = 1_000

// Small times and batches: much happens in a short world, and a fault can fall between any two steps.
const settings = {
  PLEDGEVIEW_KAFKA_SESSION_MS: String(sessionMs),
  PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX: '6000',
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
  // The same for every portal of a world.
  PLEDGEVIEW_PORTAL_KEY: 'ab'.repeat(32),
}
// Readers make about 60 requests a second, and a key may make 120 a minute.
const readerAccounts = 20
const keysOfAccount = 3

export type Stage = Awaited<ReturnType<typeof openStage>>

export interface StageOptions {
  /** Makes ClickHouse a cluster of this many servers. Otherwise it is one server, and no cluster. */
  shards?: number | undefined
}

/** What has to be closed is in `closing`, also if it rejects. */
export async function openStage(
  closing: AsyncDisposableStack,
  seed: string,
  log: Entry[],
  options: StageOptions = {},
) {
  const services = closing.adopt(await startLocalServices(options), all => all.stop())
  const { shards } = services
  const single = [services.clickHouse]
  const servers: readonly ClickHouse[] = shards?.servers ?? single
  // If it was started again, it ends after those that ask it.
  closing.defer(async () => void (await Promise.all(single.map(one => one.kill()))))
  const proxies = await Promise.all(servers.map(({ url }) => startTablesProxy(url)))
  for (const proxy of proxies) closing.defer(() => proxy.close())
  // A fold statement on a shard also reads what the other shards have of the batch log.
  const foldMsMax = shards ? 4_000 : 1_250
  const slowness = shards ? 4 : 2
  const deployment = await deploy(services.addresses, {
    ...settings,
    PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax),
  })
  closing.defer(() => deployment.stop())
  const tables: Tables = shards?.tables ?? openTables(settingsFor(services.clickHouse))
  closing.defer(() => tables.close())
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
  const onSaid = (events: readonly ChangeEvent[]) => recorder.add({ kind: 'said', at: now(), events })
  const traffic = createTraffic({ random: random('traffic'), writer, slowness, onSaid })
  closing.defer(() => traffic.stop())
  const keys = createKeyBook(deployment.environment.PLEDGEVIEW_KEY_PEPPER ?? '')
  const issued = Array.from({ length: readerAccounts * keysOfAccount }, (_, n) =>
    keys.issue(`readers-${n % readerAccounts}`),
  )
  await traffic.say(issued.map(({ event }) => event))

  /** On a cluster every shard checks the rights of the person who asks. */
  const loginOf = (user: ShardUser) =>
    shards && { PLEDGEVIEW_CLICKHOUSE_USER: user, PLEDGEVIEW_CLICKHOUSE_PASSWORD: '' }
  const processes: Record<string, Place> = {}
  function newPlace(command: 'projector' | 'query', more: Readonly<Record<string, string>>): Place {
    const place = createPlace(command, { ...deployment.environment, ...more })
    processes[`${command} ${Object.keys(processes).length}`] = place
    return closing.adopt(place, async one => void (await one.stop()))
  }
  const urls = proxies.map(({ url }) => url)
  const newProjector = () =>
    newPlace('projector', {
      PLEDGEVIEW_CLICKHOUSE_URL: urls[0] ?? '',
      ...(shards && { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: urls.join(',') }),
    })
  const places = [newProjector(), newProjector()] as const
  const queries = ports.map(port =>
    newPlace('query', { ...loginOf('pledgeview_query'), PLEDGEVIEW_PORT: String(port) }),
  )
  await Promise.all([...places, ...queries].map(one => one.ready()))
  const credentials = issued.map(one => one.credentials)
  const readers = { processes: queries.length, recorder, traffic, keys: credentials, random, slowness }

  const stage = {
    services,
    deployment,
    loginOf,
    queries,
    /** All places that were ever made, by name. */
    processes,
    /** The tables themselves, without the proxy. On a cluster: the whole tables. */
    tables,
    databases,
    /** The server, or each shard. */
    folded,
    foldMsMax,
    traffic,
    keys,
    recorder,
    places,
    newProjector,
    random,

    /** Resolves with the mirrors. */
    async start() {
      traffic.start()
      await stage.untilShown()
      // Each projector may be late with the keys of its partitions, and each key ring with those of a fold.
      await Promise.all(credentials.map(key => stage.untilBoth('/stats', undefined, key)))
      const stopping = new AbortController()
      const { signal } = stopping
      const running = Promise.all([startReaders(readers, signal), watchReady(queries, recorder, signal)])
      running.catch(() => {})
      closing.defer(async () => {
        stopping.abort()
        await running
      })
      return (['loop', 'client'] as const).map(kind =>
        closing.adopt(startMirror(kind, readers), one => one.stop()),
      )
    },

    /** Answers of both processes, each asked until its answer suffices. Default: any answer does. */
    async untilBoth(
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
    },

    /** Resolves when both processes have read what is in the tables now: an answer with a later watermark has all of it. */
    untilShown(): Promise<void> {
      const moment = Date.now()
      return stage.untilBoth(
        '/projects?limit=1',
        headers => Date.parse(headers['x-data-as-of'] ?? '') > moment,
      )
    },

    /** Resolves when the tables are what was said. */
    untilProjected(): Promise<void> {
      const expected = expectedReading(readModelOf(traffic.events()))
      return until(
        async () =>
          isDeepStrictEqual(await readViews(tables, databases), expected) &&
          isDeepStrictEqual(await activeKeys(tables, databases), keys.active()),
        // Each look reads all views.
        500,
      )
    },

    /** Resolves when, from now on, a batch was written and a fold was finished on every server, in the current generation. */
    async untilItMoves(): Promise<void> {
      const current = await currentOf(tables)
      const look = (count: typeof foldsIn) => Promise.all(folded.map(one => count(one.tables, current)))
      const [written, done] = [await look(batchesIn), await look(foldsIn)]
      await until(
        async () =>
          (await look(batchesIn)).every((count, n) => count > (written[n] ?? 0)) &&
          (await look(foldsIn)).every((count, n) => count > (done[n] ?? 0)),
      )
    },

    /** Pauses the traffic until tables and keys are what the events say, and reads everything then. And does this. */
    async settled(besides = async () => {}): Promise<void> {
      await traffic.pause()
      try {
        // If it does not get there, the answers that are read now say what is wrong.
        const failure: unknown = await stage.untilProjected().catch(error => error)
        await stage.untilShown()
        const from = now()
        for (const process of queries.keys()) await until(() => stage.audited(process, from), cacheMs)
        recorder.add({ kind: 'quiet', from, to: now() })
        if (failure !== undefined) throw failure
        await besides()
      } finally {
        // Also after a failure: the faults that follow wait for traffic.
        traffic.resume()
      }
    },

    /** Whether the process has answered everything, with what it read after this moment: not from a cache, and without an error. */
    async audited(process: number, from: number): Promise<boolean> {
      const before = recorder.log.length
      await readWhole({ ...readers, random: random('audit', String(before)), reader: 'the audit', process })
      return recorder.log.slice(before).every(one => {
        const isOther = one.kind !== 'answer' || one.reader !== 'the audit'
        return isOther || (one.status === 200 && one.sentAt - one.ageMs >= from)
      })
    },

    /** Plays a fault, and waits until everything is settled. */
    async play(fault: () => Promise<void>): Promise<void> {
      step++
      await fault()
      await stage.untilItMoves()
      await stage.settled()
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

    /** The server as it runs now; on a cluster, that of a shard. */
    clickHouse: (shard: number): ClickHouse => servers[shard] as ClickHouse,
    /** On the same directory and port, after it was killed. */
    async restartClickHouse(shard: number): Promise<void> {
      if (shards) return shards.restart(shard)
      const { directory, url } = services.clickHouse
      single[0] = await startClickHouse({ directory, httpPort: Number(new URL(url).port), ...withBackups })
    },
  }
  return stage
}
