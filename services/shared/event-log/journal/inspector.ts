/** Reads a journal without being one of its consumers: for `status`, `rejects` and the ops pages. */
import type { StoredReject } from '../port.ts'
import type { RejectFilter, TakeRejects } from '../reject-filter.ts'
import { openJournalFileReadOnly } from './file.ts'
import { countRejects, lastReject, listRejects, type RejectQuery, readRejects } from './rejects.ts'

export interface JournalInspector {
  /** The latest rejects first. */
  rejects(query: RejectQuery): StoredReject[]
  /** How many rejects match the filter; all of them without a filter. */
  rejectCount(filter?: RejectFilter): number
  /** Passes on the rejects that are stored at this moment, in parts of bounded size, until `take` returns false. */
  walkRejects(filter: RejectFilter, take: TakeRejects): Promise<void>
  close(): void
}

const walkPart = { limit: 500, bytesMax: 8 * 1024 ** 2 }

/** Opens an existing journal read-only. Throws an `Error` if there is none. */
export function openJournalInspector(path: string): JournalInspector {
  const db = openJournalFileReadOnly(path)
  return {
    rejects: query => listRejects(db, query),
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
