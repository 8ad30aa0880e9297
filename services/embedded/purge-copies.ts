/** What a data directory keeps: the journal, and the tables. A service may run on it: both can be used by several processes. */
import { portalVersionOf } from '../../contracts/events/portal-event.ts'
import type { Copies } from '../erasure/purge.ts'
import { type PurgedCopy, purged, unreached } from '../erasure/report.ts'
import type { TablesPurge } from '../erasure/tables.ts'
import { type CompactionReport, compactJournal } from '../log/local/compact.ts'
import type { LogRecord } from '../log/port.ts'
import { createDecoder } from '../projector/ingest/decode.ts'
import { tombstoneVersion, versionOf } from '../projector/ingest/ledger-rows.ts'
import { messageOf } from '../runtime/message-of.ts'
import { counted, megabytes } from '../runtime/progress.ts'
import type { EmbeddedAccess } from './access.ts'

// Rewriting takes about a second for each of these, and writers give up after 15 s.
const rewriteBytesMaxBeside = 512 * 1024 ** 2

export async function embeddedCopies(access: EmbeddedAccess): Promise<Copies> {
  return {
    whole: access,
    shards: await access.shards(),
    rebuilds: await access.rebuilds(),
    isServed: access.service !== undefined,
    lag: access.lag,
    purgeLog: settings => purgeJournal(access, settings),
    others: async () => [],
  }
}

async function purgeJournal(access: EmbeddedAccess, settings: TablesPurge): Promise<PurgedCopy[]> {
  const { isDry } = settings
  try {
    const report = await compactJournal(access.directory.journal, {
      versionOf: eventVersions(),
      unwanted: await unwantedRecords(access, settings),
      isDry,
      rewriteBytesMax: access.service ? rewriteBytesMaxBeside : Number.POSITIVE_INFINITY,
    })
    return [eventLogCopy(report, isDry)]
  } catch (error) {
    return [unreached('event log', messageOf(error))]
  }
}

function eventLogCopy(report: CompactionReport, isDry: boolean): PurgedCopy {
  const { records, bytesBefore, bytesAfter, isRewritten } = report
  const copy = 'event log'
  if (isDry) return purged(copy, `removes ${counted(records, 'record')} of ${megabytes(bytesBefore)}`)
  const done = `removed ${counted(records, 'record')}, ${megabytes(bytesBefore)} to ${megabytes(bytesAfter)}`
  if (isRewritten) return purged(copy, done)
  const left = 'perhaps remains in free pages: stop the service, then run the purge again'
  return { ...unreached(copy, left), done }
}

/** The journal keeps the records of rejects, too, and keeps them for ever. */
async function unwantedRecords({ tables, databases }: EmbeddedAccess, { removesRejects }: TablesPurge) {
  if (!removesRejects) return []
  return tables.rows<Pick<LogRecord, 'topic' | 'offset' | 'appendedAt'>>({
    query: `SELECT topic, offset, appended_at AS appendedAt FROM ${databases.base}.rejects FINAL WHERE log = ''`,
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
        return versionOf(event)
      case 'account':
      case 'notice':
        return portalVersionOf(event)
      case 'removed-notice':
        return tombstoneVersion
      default:
        return event satisfies never
    }
  }
}
