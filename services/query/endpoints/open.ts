/** Opens the endpoints of an app: what they read from, how their answers are loaded, and how an answer becomes text. */

import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { createFairTurns, type Turn } from '../../runtime/async/fair-turns.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { Tables } from '../../tables/port.ts'
import type { AppRuntime, QueryAppParts } from '../app.ts'
import { createCache } from '../cache/cache.ts'
import { type CacheEntry, entryOf } from '../cache/response-cache.ts'
import { assertAnswer, assertLifetime, assertPage } from '../campaigns/assertions.ts'
import { writtenAt } from '../campaigns/campaign-fields.ts'
import { createCachedCampaignRows } from '../campaigns/campaign-rows.ts'
import type { Keeper } from '../forgetting.ts'
import {
  createCampaignLists,
  createIndexListSource,
  createSqlListSource,
  snapshots as listSnapshots,
} from '../lists/campaign-lists.ts'
import { createListFollower } from '../lists/list-follower.ts'
import type { QueryAppOptions } from '../options.ts'
import { createAhead } from './ahead.ts'
import type { Asked, Endpoint, EndpointParts, Loaded, WrittenPage } from './endpoint.ts'
import { paginationSchema } from './page.ts'

/** Loads an answer as a finished response. */
export type LoadAnswer = (asked: Asked, owner: string) => Promise<CacheEntry>

/** Lists and rows share one list follower, so the rows of a page are as new as its list. */
export function createEndpointParts(app: QueryAppParts, runtime: AppRuntime) {
  const { databases, options, newSnapshotId = randomUUID } = app
  const tables = limitTables(app.tables, options)
  const { PLEDGEVIEW_QUERY_MS_MAX: statementMsMax, rowBytesMax: bytesMax } = options
  const { now, logger } = runtime
  const indexed = { statementMsMax, campaignsMax: options.PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX }
  const onIndexError = (err: unknown) =>
    logger.warn({ err }, 'the list index could not be loaded or refreshed; this is tried again later')
  const follower = createListFollower(tables, databases, indexed, onIndexError, runtime)
  const keptMs = options.PLEDGEVIEW_REMOVALS_DAYS * dayMs
  const sql = createSqlListSource(tables, databases, { keptMs, msMax: statementMsMax })
  const source = { ...sql, ...createIndexListSource(follower, sql, runtime) }
  const snapshots =
    app.snapshots ?? createCache(listSnapshots, { bytesMax: options.PLEDGEVIEW_CACHE_BYTES_MAX, now })
  const made = { now, listCacheMs: options.PLEDGEVIEW_CACHE_MS, newSnapshotId }
  const lists = createCampaignLists(source, snapshots, made)
  const kept = { statementMsMax, bytesMax, onLookup: app.onRowLookup }
  const rows = createCachedCampaignRows(tables, databases, follower, kept, runtime)
  // A purge leaves the ids of lists until they expire, so that the pages of a walk come from one snapshot.
  const lasting: Keeper = { forgetOld: () => snapshots.forgetOld(), forgetAll: () => undefined }
  const parts: EndpointParts = { tables, databases, lists, rows, slugs: follower, options }
  const keepers: Keeper[] = [rows, follower, lasting]
  return { parts, keepers }
}

// A statement may be for many requests, so all statements are in one line, and none has a client that can go.
const anyStatement: Turn = { key: '', isGone: () => false }

/** Limits how many statements run at once, and bounds the time of each, including the time it waits to start. */
function limitTables(tables: Pick<Tables, 'rows'>, options: QueryAppOptions): Pick<Tables, 'rows'> {
  const { statementsMax, waitingStatementsMax, PLEDGEVIEW_QUERY_MS_MAX: statementMsMax } = options
  const turns = createFairTurns({
    runningMax: statementsMax,
    runningPerKeyMax: statementsMax,
    waitingPerKeyMax: waitingStatementsMax,
    waitMsMax: statementMsMax,
  })
  return {
    rows: statement =>
      turns.run(anyStatement, () => tables.rows(statement, { signal: AbortSignal.timeout(statementMsMax) })),
  }
}

// No request waits for an answer that is computed ahead, so it may take as long as a statement may be silent. It uses one core.
const aheadMsMax = 30_000

/** Opens an endpoint. If it has no parameters, and the app is to keep answers ahead, it is kept ahead while the app runs. */
export function openEndpoint(
  app: FastifyInstance,
  endpoint: Endpoint,
  { parts, keepers }: ReturnType<typeof createEndpointParts>,
  { cache, tables, options, keepsAhead }: QueryAppParts,
  runtime: AppRuntime,
): LoadAnswer {
  const finished = async (asked: Asked, owner: string, from = parts) => {
    const createdAt = runtime.now()
    const { body, isSlow = false, ...rest } = await asked.load(from, owner, createdAt)
    const made = { createdAt, expiresAt: createdAt + endpoint.cacheMs(options), ...rest }
    const text = 'written' in body ? pageText(body, made) : bodyText(endpoint.schema, body, made)
    return { entry: entryOf(text, { asOf: null, snapshotId: null, link: null, ...made }), isSlow }
  }
  const load: LoadAnswer = async (asked, owner) => (await finished(asked, owner)).entry
  const { query, path } = endpoint.parameters
  if (!keepsAhead || query !== undefined || path !== undefined) return load
  const asked = endpoint.read('', {}) as Asked
  const statementMsMax = Math.max(aheadMsMax, options.PLEDGEVIEW_QUERY_MS_MAX)
  const kept = createAhead(
    asked.key,
    cache,
    endpoint.cacheMs(options),
    {
      compute: () => load(asked, ''),
      computeAhead: signal => {
        const until = AbortSignal.any([signal, AbortSignal.timeout(statementMsMax)])
        const rows: Tables['rows'] = statement => tables.rows(statement, { signal: until })
        const slow = {
          ...parts,
          tables: { rows },
          options: { ...parts.options, PLEDGEVIEW_QUERY_MS_MAX: statementMsMax, threadsMax: 1 },
        }
        return finished(asked, '', slow)
      },
      onError: error => runtime.logger.warn({ err: error }, 'an answer could not be computed ahead'),
    },
    runtime,
  )
  keepers.push(kept)
  const closing = new AbortController()
  let running = Promise.resolve()
  app.addHook('onReady', () => {
    running = kept.run(closing.signal)
    return kept.started()
  })
  app.addHook('onClose', () => {
    closing.abort()
    return running
  })
  return kept.load
}

type Made = Omit<Loaded, 'body' | 'isSlow'> & { createdAt: number }

function bodyText(schema: z.ZodType<object>, body: object, made: Made): string {
  const parsed = schema.parse(body)
  assertAnswer(parsed, body, made)
  return JSON.stringify(parsed)
}

/** The text that the schema of the page would leave, from campaigns that are text already. */
export function pageText({ written, pagination }: WrittenPage, made: Made): string {
  assertLifetime(made)
  assertPage(written, pagination, made)
  const data = written.map(campaign => writtenAt(campaign, made.createdAt)).join(',')
  return `{"data":[${data}],"pagination":${JSON.stringify(paginationSchema.parse(pagination))}}`
}
