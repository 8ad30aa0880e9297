/**
 * Keeps analysts within their bounds, in addition to the settings of their profile.
 *
 * Settings alone are not enough: in this version of ClickHouse any query can reset a setting to its default, despite
 * the constraints (`SETTINGS max_execution_time = DEFAULT`; ClickHouse/ClickHouse#115334), and the settings of a
 * subquery are not checked. So there are two more safeguards that no query can change: workloads, which bound
 * everything except the program, and a watch that kills queries that exceed the bounds of the profile.
 *
 * Two things cannot be ended so. ClickHouse looks for a cancellation between two blocks only, and one function on one block of long
 * strings can take hours: such a query would keep its slot. And what a session holds belongs to no query: anyone who keeps sessions
 * busy could fill the memory of the server. If the watch sees one of them, the server is restarted. That takes the program about a second.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RoleSetting } from '../tables/schema/roles.ts'
import { ask } from './child.ts'
import {
  analystBounds,
  analystThreads,
  analystUser,
  programWorkload,
  type ServerConfiguration,
  unreadSecondsMax,
} from './configuration.ts'

// ClickHouse itself ends a query before this.
const graceSeconds = 5
const watchMs = 1_000
// After that, a query that was killed has not noticed it. One that waits for a client to read notices it after `unreadSecondsMax`.
const deafSeconds = unreadSecondsMax + 10
// What belongs to no query was 240 MB at most under a full load, with memory for 537 MB.
const heldShareMax = 0.75
const looksMax = 3
const runningStatement = `SELECT count() FROM system.processes WHERE user = '${analystUser}'`
// A workload is written to disk. Only a disk that stands still takes longer.
const workloadMsMax = 30_000

/** Creates the workloads. They are lost when the server ends. */
export async function boundAnalysts(configuration: ServerConfiguration): Promise<void> {
  for (const statement of workloadStatements(configuration))
    await ask(configuration, statement, workloadMsMax)
}

/**
 * Kills queries that exceed a bound, until the signal aborts. Restarts the server if analysts hold what a kill does not free. Does
 * nothing while the server is away.
 */
export async function watchAnalysts(
  configuration: ServerConfiguration,
  isAway: () => boolean,
  signal: AbortSignal,
  restart: (reason: string) => Promise<void>,
): Promise<void> {
  const killing = killStatement(configuration)
  const asking = heldStatement(configuration)
  // While it is away, another program may have its port, and would get the password.
  const askIfThere = async (statement: string) =>
    isAway() ? undefined : ask(configuration, statement).catch(() => undefined)
  let looks = 0
  while (!signal.aborted) {
    // To ask first costs a fifth of a `KILL` that finds nothing.
    const running = await askIfThere(runningStatement)
    if (running?.trim() !== '0') await askIfThere(killing)
    // If the memory is full, there may be no answer. Then the looks before still count.
    const held = (await askIfThere(asking))?.trim()
    if (held !== undefined) looks = held === '' ? 0 : looks + 1
    if (held && looks >= looksMax) {
      looks = 0
      await restart(held)
    }
    await sleep(watchMs, undefined, { signal }).catch(() => undefined)
  }
}

/**
 * Analysts together get half of the cores. That many queries run at once, each with its own thread, and that many
 * more threads help them. Further queries wait, up to the number that a user may have. Without this their threads
 * would compete with the program's threads if the process may not set priorities. Even on a small machine two queries run at
 * once: a slow one, which may only sleep, leaves a slot to others.
 *
 * A query's own thread is not counted. If it were, a query that runs another one within itself (WITH RECURSIVE) would
 * wait for ever for a thread that it holds itself.
 */
function workloadStatements(configuration: ServerConfiguration): string[] {
  const threads = analystThreads(configuration.cores)
  const queries = Math.max(2, Math.floor(threads / 2))
  const bounds = `max_concurrent_queries = ${queries}, max_concurrent_threads = ${Math.max(1, threads - queries)}`
  const queriesMax = mostOf('max_concurrent_queries_for_user', configuration)
  const waiting = `max_waiting_queries = ${Math.max(1, queriesMax - queries)}`
  return [
    'CREATE RESOURCE IF NOT EXISTS query (QUERY)',
    'CREATE RESOURCE IF NOT EXISTS cpu (WORKER THREAD)',
    'CREATE WORKLOAD IF NOT EXISTS all',
    `CREATE WORKLOAD IF NOT EXISTS ${programWorkload} IN all`,
    `CREATE OR REPLACE WORKLOAD bounded IN all SETTINGS ${bounds}`,
    // Two workloads, because a query may set its workload back to `default`.
    `CREATE OR REPLACE WORKLOAD analyst IN bounded SETTINGS ${waiting}`,
    `CREATE OR REPLACE WORKLOAD default IN bounded SETTINGS ${waiting}`,
  ]
}

/**
 * Kills the analysts' queries that exceed the time that they asked for, or the highest value that their profile allows. With
 * `wait_end_of_query` a result waits on disk until it is whole, so the bound on a result also bounds the disk that it takes.
 */
export function killStatement(configuration: ServerConfiguration): string {
  return `KILL QUERY WHERE user = '${analystUser}' AND (
            elapsed > ${secondsOf(configuration)} + ${graceSeconds}
            OR memory_usage > ${mostOf('max_memory_usage', configuration)}
            OR read_rows > ${mostOf('max_rows_to_read', configuration)}
            OR ProfileEvents['ExternalProcessingCompressedBytesTotal'] > ${mostOf('max_result_bytes', configuration)})`
}

/** Says what analysts hold although their queries were killed. Empty if nothing. A query that waits for a slot is no process yet. */
export function heldStatement(configuration: ServerConfiguration): string {
  const secondsMax = `${secondsOf(configuration)} + ${graceSeconds + deafSeconds}`
  const bytesMax = Math.floor(heldShareMax * configuration.memoryBytesMax)
  return `SELECT multiIf(
            (SELECT count() FROM system.processes WHERE user = '${analystUser}' AND elapsed > ${secondsMax}) > 0,
            'a slot: a query continues after it was killed',
            (SELECT sumIf(value, metric = 'MemoryTracking') - sumIf(value, metric = 'MergesMutationsMemoryTracking')
             FROM system.metrics) - (SELECT sum(greatest(memory_usage, 0)) FROM system.processes) > ${bytesMax},
            'memory that belongs to no query: sessions',
            '')`
}

/**
 * The time that a query may take, in SQL. One that has reset its setting has the time of the profile. So has one that asked for more,
 * if all slots are held by queries that have taken it, and another query waits.
 */
function secondsOf(configuration: ServerConfiguration): string {
  const { value } = boundOf('max_execution_time', configuration)
  const asked = "toFloat64OrZero(Settings['max_execution_time'])"
  const crowded = `(SELECT count() FROM system.scheduler
            WHERE resource = 'query' AND path LIKE '%/bounded/semaphore' AND is_satisfied = 0 AND active_children > 0) > 0
            AND (SELECT min(elapsed) FROM system.processes WHERE user = '${analystUser}') > ${value}`
  const most = `if(${crowded}, ${value}, ${mostOf('max_execution_time', configuration)})`
  return `if(${asked} > 0, least(${asked}, ${most}), ${value})`
}

function mostOf(name: string, configuration: ServerConfiguration): number {
  const { range, value } = boundOf(name, configuration)
  return Number(range?.max ?? value)
}

function boundOf(name: string, configuration: ServerConfiguration): RoleSetting {
  const bound = analystBounds(configuration).find(one => one.name === name)
  if (!bound) throw new Error(`the role of the analysts has no ${name}`)
  return bound
}
