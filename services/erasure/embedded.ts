/**
 * Purges a data directory: journal, tables and what rebuilds have left, in this process. A service may run on the
 * directory: the journal and ClickHouse can be used by both.
 */

import { portalVersionOf } from '../../contracts/events/portal-event.ts'
import type { ModelAccess } from '../local/access.ts'
import type { DataDirectory } from '../local/data-directory.ts'
import { type CompactionReport, compactJournal } from '../log/local/compact.ts'
import type { LogRecord } from '../log/port.ts'
import { createDecoder } from '../projector/ingest/decode.ts'
import { tombstoneVersion } from '../projector/ingest/ledger-rows.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { megabytes } from '../runtime/progress.ts'
import { purgeCaches } from './caches.ts'
import { untilCaughtUp } from './caught-up.ts'
import { purgeRebuilds } from './rebuilds.ts'
import { counted, type PurgedCopy, type PurgeReport, purged, unreached } from './report.ts'
import { purgeTables, type TablesPurge } from './tables.ts'

export interface EmbeddedPurge extends TablesPurge {
  directory: DataDirectory
  access: Pick<ModelAccess, 'service' | 'tables' | 'databases' | 'rebuilds' | 'status'>
  config: Config
}

// Rewriting takes about a second for each of these, and writers give up after 15 s.
const rewriteBytesMaxBeside = 512 * 1024 ** 2

/** Throws if the projector does not get to the end of the log. Anything else that fails is part of the report. */
export async function purgeEmbedded(purge: EmbeddedPurge): Promise<PurgeReport> {
  const { access, config, isDry, now } = purge
  const startedAt = new Date(now()).toISOString()
  const { tables, databases } = access
  const shard = { tables, databases }
  if (!isDry) {
    const lag = async () => (await access.status()).projector.lag
    await untilCaughtUp({ ...purge, lag, shards: [shard] })
  }
  const copies = [
    ...(await purgeJournal(purge)),
    ...(await purgeTables(shard, purge)),
    ...(await purgeRebuilds(shard, access.rebuilds, purge)),
    access.service ? await purgeCaches(shard, config, purge) : purged('cached answers', 'no service runs'),
  ]
  return { isDry, startedAt, copies }
}

async function purgeJournal(purge: EmbeddedPurge): Promise<PurgedCopy[]> {
  const { directory, access, isDry } = purge
  const copy = 'event log'
  try {
    const report = await compactJournal(directory.journal, {
      versionOf: eventVersions(),
      unwanted: await unwantedRecords(purge),
      isDry,
      rewriteBytesMax: access.service ? rewriteBytesMaxBeside : Number.POSITIVE_INFINITY,
    })
    return [eventLogCopy(report, isDry)]
  } catch (error) {
    return [unreached(copy, messageOf(error))]
  }
}

function eventLogCopy(report: CompactionReport, isDry: boolean): PurgedCopy {
  const { records, unread, bytesBefore, bytesAfter, isRewritten } = report
  const copy = 'event log'
  if (isDry) return purged(copy, `removes ${counted(records, 'record')} of ${megabytes(bytesBefore)}`)
  const done = `removed ${counted(records, 'record')}, ${megabytes(bytesBefore)} to ${megabytes(bytesAfter)}`
  const left = [
    ...(unread > 0 ? [`${counted(unread, 'record')} that a rebuild or the projector has not read yet`] : []),
    ...(isRewritten ? [] : ['perhaps remains in free pages: stop the service, then run the purge again']),
  ]
  return left.length === 0 ? purged(copy, done) : { ...unreached(copy, left.join('; ')), done }
}

/** The journal keeps the records of rejects, too, and keeps them for ever. */
async function unwantedRecords({ access, isDry, removesRejects }: EmbeddedPurge) {
  if (!removesRejects || isDry) return []
  return access.tables.rows<Pick<LogRecord, 'topic' | 'offset'>>({
    query: `SELECT topic, offset FROM ${access.databases.base}.rejects FINAL WHERE log = ''`,
  })
}

/** The version of the event in a record of the journal; `undefined` if it is no valid event. */
function eventVersions(): (record: LogRecord) => bigint | undefined {
  const decode = createDecoder()
  return record => {
    const event = decode(record)
    if ('reason' in event) return undefined
    switch (event.type) {
      case 'campaign':
      case 'pledge':
      case 'api-key':
        return BigInt(event.data === null ? tombstoneVersion : event.data.version)
      case 'account':
      case 'integration':
      case 'notice':
        return portalVersionOf(event)
      case 'removed-notice':
        return tombstoneVersion
      default:
        return event satisfies never
    }
  }
}
