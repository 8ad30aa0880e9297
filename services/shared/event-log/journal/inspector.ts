/** Looks into a journal without being one of its consumers: for `status`, `rejects` and the ops pages. */
import type { Topic } from '../../../../contracts/events/event.ts'
import type { StoredReject } from '../port.ts'
import type { RejectFilter, RejectPlace, TakeRejects } from '../reject-filter.ts'
import { endOf, openJournalFileReadOnly } from './file.ts'
import { readPositions } from './positions.ts'
import {
  countRejects,
  findReject,
  lastReject,
  listRejects,
  type RejectQuery,
  readRejects,
} from './rejects.ts'

export interface JournalInspector {
  /** The offset that the next record of each topic will get. */
  ends(): Record<Topic, number>
  /** Names of the consumers that ever read, in order. */
  consumers(): string[]
  /** The offset that a consumer reads next in each topic, as far as it has committed. */
  positions(consumer: string): Record<Topic, number>
  /** The latest rejects first. */
  rejects(query: RejectQuery): StoredReject[]
  reject(at: RejectPlace): StoredReject | undefined
  /** How many there are of those that the filter asks for; of all, without one. */
  rejectCount(filter?: RejectFilter): number
  /** Hands over those that are kept at this moment, in parts that memory holds, until `take` wants no more. */
  walkRejects(filter: RejectFilter, take: TakeRejects): Promise<void>
  close(): void
}

const walkPart = { limit: 500, bytesMax: 8 * 1024 ** 2 }

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
    rejectCount: (filter = {}) => countRejects(db, filter),
    async walkRejects(filter, take) {
      const last = lastReject(db)
      for (let after = 0; ; ) {
        const { rejects, next } = readRejects(db, { ...filter, ...walkPart, after, last })
        if (rejects.length === 0 || !(await take(rejects))) return
        after = next
      }
    },
    close: () => {
      if (db.isOpen) db.close()
    },
  }
}
