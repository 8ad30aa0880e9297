/** Looks into a journal without being one of its consumers: for `status`, `rejects` and the ops pages. */
import type { Topic } from '../../../../contracts/events/event.ts'
import type { LogRecord, StoredReject } from '../port.ts'
import { endOf, openJournalFileReadOnly } from './file.ts'
import { readPositions } from './positions.ts'
import { countRejects, findReject, listRejects, type RejectQuery } from './rejects.ts'

export interface JournalInspector {
  /** The offset that the next record of each topic will get. */
  ends(): Record<Topic, number>
  /** Names of the consumers that ever read, in order. */
  consumers(): string[]
  /** The offset that a consumer reads next in each topic, as far as it has committed. */
  positions(consumer: string): Record<Topic, number>
  /** The latest rejects first. */
  rejects(query: RejectQuery): StoredReject[]
  reject(at: Pick<LogRecord, 'topic' | 'partition' | 'offset'>): StoredReject | undefined
  rejectCount(): number
  close(): void
}

/** Opens an existing journal for looking only. Throws an `Error` where there is none. */
export function openJournalInspector(path: string): JournalInspector {
  const db = openJournalFileReadOnly(path)
  return {
    ends: () => ({
      campaigns: endOf(db, 'campaigns'),
      pledges: endOf(db, 'pledges'),
      'api-keys': endOf(db, 'api-keys'),
    }),
    consumers: () =>
      db
        .prepare('SELECT name FROM consumers ORDER BY name')
        .all()
        .map(row => String(row.name)),
    positions: consumer => readPositions(db, consumer),
    rejects: query => listRejects(db, query),
    reject: at => findReject(db, at),
    rejectCount: () => countRejects(db),
    close: () => {
      if (db.isOpen) db.close()
    },
  }
}
