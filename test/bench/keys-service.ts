/**
 * The keys bench's server: two instances of the query service's app over the same tables. One gives keys their turns, the
 * other starts everything in the order of arrival.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { defaultQueryAppOptions, type QueryAppOptions } from '../../services/query/options.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { openOwnTables } from '../support/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { type PlatformApp, startPlatformApp } from './platform-app.ts'

export interface KeysServiceInput {
  directory: string
  keys: number
}

/** An app, and the headers of its keys. */
export interface ServedKeys {
  apiUrl: string
  headers: Record<string, string>[]
}

export interface KeysServiceReady {
  inTurn: ServedKeys
  firstCome: ServedKeys
}

const loadedMsMax = 120_000
const indexedMsMax = 50
const { directory, keys } = benchInput<KeysServiceInput>()
const { tables } = await openOwnTables({ directory })
const { uncachedMax, uncachedPerKeyMax } = defaultQueryAppOptions
const inTurn = await start({ uncachedMax, uncachedPerKeyMax })
const firstCome = await start({ socketTimeoutMs: 300_000 })
const ready: KeysServiceReady = { inTurn, firstCome }
serveBench({ ready })

async function start(options: Partial<QueryAppOptions>): Promise<ServedKeys> {
  const app = await startPlatformApp(tables, defaultDatabases, options)
  await indexLoaded(app)
  return { apiUrl: app.apiUrl, headers: Array.from({ length: keys }, (_, n) => app.headersOf(n)) }
}

/** Waits until a list that was never requested is answered as quickly as only the index answers. */
async function indexLoaded({ apiUrl, headers }: PlatformApp): Promise<void> {
  const deadline = performance.now() + loadedMsMax
  for (let attempt = 0, quick = 0; quick < 5; attempt++) {
    if (performance.now() > deadline) throw new Error(`the index was not loaded within ${loadedMsMax} ms`)
    const startedMs = performance.now()
    const since = new Date(Date.UTC(2001, 0) + attempt).toISOString()
    const response = await fetch(`${apiUrl}/projects?limit=1&updated_since=${since}`, { headers })
    await response.arrayBuffer()
    quick = performance.now() - startedMs < indexedMsMax ? quick + 1 : 0
    await delay(100)
  }
}
