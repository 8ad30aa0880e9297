/**
 * The key ring: the active API keys in memory. It follows the read table, so authentication needs no query.
 *
 * Every `pollMs` it looks at the highest fold id, the number of active keys, and the keys that the ledger knows as revoked. If the
 * fold id is higher than what it has, it reads the rows of higher ids: the fold writes in one line, so nothing comes later under a lower
 * one. If the numbers still differ, or the table has gone back, the table was restored. Then it loads all keys, in pages. A load that
 * fails goes on where it stopped. Looks go on beside all that, so that a long load delays no revocation.
 *
 * A revocation must not wait for a fold, which may have a backlog, a rebuild to promote or no leader. So a key that the ledger knows as
 * revoked (the view `revoked_keys`) is refused, although the read table still has it.
 *
 * Promises:
 * - valid keys are known while ClickHouse answers each statement within `readMsMax`, however many keys there are and however long a
 *   load takes;
 * - a key is refused within two seconds of the insert of its revocation into the ledger, while ClickHouse answers;
 * - if nothing could be read for `staleMsMax`, the keys are unknown, and none passes: one may be revoked, or its time may be over. If
 *   the last complete comparison is older than `freshMsMax`, the ring reports that it is not fresh. Refused keys stay refused.
 */
import { type Rounds, startRounds } from '../../runtime/async/rounds.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { timeBound } from '../../tables/clickhouse/statements.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'

export interface ApiKey {
  key: string
  /** Lower-case hex; see `hashSecret`. */
  secretHash: string
  scopes: readonly string[]
}

export type KeyRing = ReturnType<typeof createKeyRing>

export type KeyRingOptions = typeof defaultKeyRingOptions

export const defaultKeyRingOptions = {
  /** Pause between two looks. */
  pollMs: 500,
  /**
   * Time limit of a look. It is short, so that a look on a lost connection is soon tried again. After a failure the limit doubles, up
   * to `readMsMax`, and it is at least twice what the last look took.
   */
  pollMsMax: 1_000,
  /** Time limit of the other statements. */
  readMsMax: 15_000,
  /** How long the ring is fresh after its keys were equal to the table. */
  freshMsMax: 2_000,
  /** If nothing could be read for this long, it is not known which keys are valid. */
  staleMsMax: 60_000,
  /** A statement of a load reads this number of keys, so that it is short. */
  pageKeysMax: 20_000,
  /** Every key is loaded at least this often, even if it has not changed. One look loads one page of them. */
  reloadMsMax: 60_000,
  /**
   * How long a key stays refused at least after it has left the view of the revoked ones. Then the fold has made it inactive, and
   * the ring needs some time to notice.
   */
  refusedMsMin: 300_000,
}

export interface KeyRingContext extends Pick<Runtime, 'monotonicMs' | 'sleep'> {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Called for every failure, for the log. */
  onError: (error: unknown) => void
}

/**
 * A load of all keys that is under way. `reached`: the highest fold id when it began. `isUrgent`: the present keys may be wrong, so it does
 * not wait for the next look between two pages.
 */
function newLoad(reached: bigint, isUrgent: boolean) {
  return {
    keys: new Map<string, ApiKey>(),
    /** Those that changed since it began. A page may have them as they were. */
    changed: new Set<string>(),
    /** The last key that it has read. */
    after: '',
    reached,
    isUrgent,
  }
}

type Load = ReturnType<typeof newLoad>

/** Runs a statement, for at most that long. Default: `readMsMax`. */
type Read = <Row>(statement: Statement, msMax?: number) => Promise<Row[]>

/** Creates a key ring. Call `start` to load the keys. */
export function createKeyRing(
  options: KeyRingOptions,
  { tables, databases, monotonicMs, sleep, onError }: KeyRingContext,
) {
  const { pollMs, pollMsMax, readMsMax } = options
  let keys: Map<string, ApiKey> | undefined
  let load: Load | undefined
  /** The keys have every row up to this fold id. */
  let reached = 0n
  let loadedAt = Number.NEGATIVE_INFINITY
  /** When the keys last became equal to the table. */
  let confirmedAt = Number.NEGATIVE_INFINITY
  /** When keys were last read, or confirmed. */
  let readAt = Number.NEGATIVE_INFINITY
  /** Each refused key, and when it was last in the view. */
  const refused = new Map<string, number>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let lookMsMax = pollMsMax
  let looks: Rounds | undefined
  /** Reads what the last look found to be new. Only one runs at a time. */
  let following: Promise<void> | undefined
  /** Reads changes beside `following`, which may load keys, or wait for an answer about earlier changes. Only one runs at a time. */
  let changing: Promise<void> | undefined

  const ageMs = () => monotonicMs() - Math.min(readAt, lookedAt)

  async function loadPage(read: Read, loading: Load): Promise<void> {
    const startedAt = monotonicMs()
    const { pageKeysMax } = options
    const rows = await read<ApiKeyRow>(apiKeysStatement(loading.after, pageKeysMax, databases))
    for (const row of rows.filter(({ api_key }) => !loading.changed.has(api_key)))
      loading.keys.set(row.api_key, toApiKey(row, keys?.get(row.api_key)))
    readAt = startedAt
    loading.after = rows.at(-1)?.api_key ?? loading.after
    if (rows.length === pageKeysMax) return
    load = undefined
    keys = loading.keys
    reached = loading.reached
    loadedAt = startedAt
  }

  async function readChanges(read: Read, newest: bigint): Promise<void> {
    const [before, held] = [reached, keys]
    const rows = await read<ChangedKeyRow>(changedKeysStatement(reached, databases))
    // Another read or a load has ended meanwhile. This answer may be older, and would make a revoked key valid again. What it has and
    // they lack has a higher fold id than `reached`, so the next look reads it.
    if (reached !== before || keys !== held) return
    for (const row of rows) {
      load?.changed.add(row.api_key)
      for (const known of [keys, load?.keys]) {
        if (row.is_current) known?.set(row.api_key, toApiKey(row, undefined))
        else known?.delete(row.api_key)
      }
    }
    reached = newest
  }

  /** Makes the keys equal to the table as a look saw it at `startedAt`. What changes meanwhile is left to the next look. */
  async function follow(state: KeyState, startedAt: number, read: Read): Promise<void> {
    const newest = BigInt(state.newest)
    if (keys !== undefined && newest > reached) await readChanges(read, newest)
    else if (keys === undefined || newest < reached || keys.size !== state.active) {
      load = load?.isUrgent ? load : newLoad(newest, true)
      reached = newest
    }
    while (load?.isUrgent) await loadPage(read, load)
    confirmedAt = startedAt
    readAt = Math.max(readAt, startedAt)
    for (const [key, at] of refused) if (startedAt - at > options.refusedMsMin) refused.delete(key)
    if (load === undefined && startedAt - loadedAt >= options.reloadMsMax) {
      load = newLoad(reached, false)
    }
    if (load !== undefined) await loadPage(read, load)
  }

  async function look(stopping: AbortSignal): Promise<void> {
    const read: Read = (statement, msMax = readMsMax) =>
      tables.rows(
        { ...statement, query: `${statement.query}\nSETTINGS ${timeBound(msMax)}` },
        { signal: AbortSignal.any([stopping, AbortSignal.timeout(msMax)]) },
      )
    const startedAt = monotonicMs()
    const msMax = lookMsMax
    lookMsMax = Math.min(readMsMax, 2 * msMax)
    const [state] = await read<KeyState>(keyStateStatement(databases), msMax)
    // A signal takes whole milliseconds alone.
    lookMsMax = Math.min(readMsMax, Math.max(pollMsMax, Math.ceil(2 * (monotonicMs() - startedAt))))
    if (state === undefined) throw new Error('the statement of the keys returned no row')
    for (const key of state.revoked) refused.set(key, startedAt)
    lookedAt = startedAt
    const reported = (error: unknown) => stopping.aborted || onError(error)
    const newest = BigInt(state.newest)
    // A revocation that was folded between two looks was in no view. It does not wait for a load, either.
    if (following !== undefined && newest > reached) {
      changing ??= readChanges(read, newest)
        .catch(reported)
        .then(() => {
          changing = undefined
        })
    }
    following ??= follow(state, startedAt, read)
      .catch(reported)
      .then(() => {
        following = undefined
      })
  }

  return {
    /** Looks once, and then again and again. Resolves after the first look and what it caused, even if they failed. */
    async start(): Promise<void> {
      looks = startRounds(look, { pauseMs: pollMs, onError, sleep })
      await looks.first
      await following
    },

    /** Stops, and waits for what is running. */
    async close(): Promise<void> {
      await looks?.close()
      await Promise.all([following, changing])
    },

    /**
     * The active key of that name, or `undefined`. Throws if no keys are known: they were never loaded, or the last read is too
     * long ago.
     */
    lookup(key: string): ApiKey | undefined {
      if (ageMs() > options.staleMsMax) throw new Error(`the keys are not known: last read ${ageMs()} ms ago`)
      const found = (keys ?? load?.keys)?.get(key)
      if (found === undefined && keys === undefined) throw new Error('the keys are not known: not loaded yet')
      return refused.has(key) ? undefined : found
    },

    /** Whether all keys are known, so that `lookup` does not throw. */
    isKnown: () => keys !== undefined && ageMs() <= options.staleMsMax,

    /** Whether the table answered recently enough to notice a revoked key in time. */
    isFresh: () => monotonicMs() - confirmedAt <= options.freshMsMax,
  }
}

interface KeyState {
  newest: string
  active: number
  revoked: string[]
}

interface ApiKeyRow {
  api_key: string
  secret_hash: string
  scopes: string[]
}

interface ChangedKeyRow extends ApiKeyRow {
  is_current: boolean
}

/** A new object, because a verified secret is remembered for one load. If nothing has changed, it shares the texts of the known one. */
function toApiKey({ api_key, secret_hash, scopes }: ApiKeyRow, known: ApiKey | undefined): ApiKey {
  invariant('key-hash', secret_hash.length > 0)
  return known?.secretHash === secret_hash && known.scopes.join() === scopes.join()
    ? { ...known }
    : { key: api_key, secretHash: secret_hash, scopes }
}

/**
 * One row {newest, active, revoked}: the highest fold id of the keys, the number of active ones, and those to refuse although the
 * table still has them as active.
 */
function keyStateStatement({ base }: Databases): Statement {
  return {
    query: `SELECT
    (SELECT toString(max(fold_id)) FROM ${base}.api_keys) AS newest,
    (SELECT count() FROM ${base}.api_keys FINAL WHERE is_active) AS active,
    (SELECT groupArray(api_key) FROM ${base}.revoked_keys) AS revoked`,
  }
}

/** The keys that changed after this fold id, as they are now: rows of type `ChangedKeyRow`. */
function changedKeysStatement(after: bigint, { base }: Databases): Statement {
  return {
    query: `SELECT
    api_key,
    argMax(secret_hash, fold_id) AS secret_hash,
    argMax(scopes, fold_id) AS scopes,
    argMax(is_active AND is_deleted = 0, fold_id) AS is_current
FROM ${base}.api_keys
WHERE fold_id > {after:UInt64}
GROUP BY api_key`,
    query_params: { after: after.toString() },
  }
}

/** The next active keys after this one, in order: rows of type `ApiKeyRow`. */
function apiKeysStatement(after: string, rowsMax: number, { base }: Databases): Statement {
  return {
    query: `SELECT api_key, secret_hash, scopes
FROM ${base}.api_keys FINAL
WHERE is_active AND api_key > {after:String}
ORDER BY api_key
LIMIT {rows_max:UInt32}`,
    query_params: { after, rows_max: rowsMax },
  }
}
