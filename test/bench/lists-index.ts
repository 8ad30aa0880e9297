/**
 * The list index in a separate process: how much memory it uses, how long it takes to load, sort and refresh it, and how long
 * each of these blocks the event loop, which delays all requests.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { sorts } from '../../contracts/api/parameters.ts'
import { createListFollower, type FollowedIndex } from '../../services/query/lists/list-follower.ts'
import { defaultQueryAppOptions } from '../../services/query/options.ts'
import { defaultDatabases } from '../../services/tables/port.ts'
import { openOwnTables } from '../support/clickhouse.ts'
import { benchInput, createCpuMeter, serveBench } from './bench-process.ts'
import { heldBytes } from './held-bytes.ts'
import { createChanges } from './lists-changes.ts'
import { keepFolding } from './platform-fold.ts'

export interface ListsIndexInput {
  directory: string
  campaigns: number
  /** Refreshes with so many changes each. */
  changes: readonly number[]
  rounds: number
}

export interface Held {
  ms: number
  /** The longest time that the event loop was blocked, ms. */
  heldMs: number
  /** CPU time of the event loop, ms. */
  cpuMs: number
}

export interface ListsIndexReady {
  campaigns: number
  load: Held
  /** The first list in each order. */
  firstLists: Held[]
  /** Growth of heap and array buffers since before the load. */
  loadedBytes: number
  /** The same after the lists and refreshes. */
  changedBytes: number
  refreshes: { changes: number; refresh: Held[]; nextList: Held[] }[]
}

const loadMsMax = 120_000
const { directory, campaigns, changes, rounds } = benchInput<ListsIndexInput>()
const { tables, close } = await openOwnTables({ directory })
await keepFolding(tables, defaultDatabases)
const change = createChanges({ tables, databases: defaultDatabases, campaigns })
const { statementMsMax } = defaultQueryAppOptions
const follower = createListFollower(
  tables,
  defaultDatabases,
  // Fresh for 0 ms, so that every read is a refresh. With a horizon, each would read the last changes again.
  { statementMsMax, campaignsMax: 2 * campaigns, freshMs: 0 },
  error => {
    throw error
  },
  { monotonicMs: () => performance.now() },
)

const bytesBefore = await heldBytes()
const load = await timed(loaded)
const loadedBytes = (await heldBytes()) - bytesBefore
const followed = await loaded()
const firstLists: Held[] = []
for (const sort of sorts) firstLists.push(await timed(() => list(followed, sort)))
const refreshes: ListsIndexReady['refreshes'] = []
for (const count of changes) {
  const refresh: Held[] = []
  const nextList: Held[] = []
  for (let round = 0; round < rounds; round++) {
    if (count > 0) await change(count)
    refresh.push(await timed(() => follower.current()))
    nextList.push(await timed(() => list(followed, sorts[round % sorts.length] ?? 'newest')))
  }
  refreshes.push({ changes: count, refresh, nextList })
}
const changedBytes = (await heldBytes()) - bytesBefore
const ready: ListsIndexReady = {
  campaigns: followed.index.size,
  load,
  firstLists,
  loadedBytes,
  changedBytes,
  refreshes,
}
serveBench({ ready, close })

async function loaded(): Promise<FollowedIndex> {
  const deadline = performance.now() + loadMsMax
  while (performance.now() < deadline) {
    const current = await follower.current()
    if (current) return current
    await delay(5)
  }
  throw new Error(`the index was not loaded within ${loadMsMax} ms`)
}

async function list({ index, readAt }: FollowedIndex, sort: (typeof sorts)[number]): Promise<void> {
  const query = { sort, status: 'LIVE', category: 'Category 1', updatedSince: null } as const
  await index.select(query, readAt, async () => undefined)
}

async function timed(work: () => Promise<unknown>): Promise<Held> {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  // It measures from the first call on.
  await delay(5)
  const cpu = createCpuMeter()
  const startedMs = performance.now()
  await work()
  const ms = performance.now() - startedMs
  const cpuMs = cpu()
  // A blocked loop is noticed when it runs again.
  await delay(5)
  delays.disable()
  return { ms, heldMs: delays.max / 1e6, cpuMs }
}
