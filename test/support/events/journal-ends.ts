/** The ends of a journal, read from its file. */
import { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { endOf } from '../../../services/log/local/file.ts'

/** The offset that the next record of each topic will get. */
export function journalEnds(path: string): Record<Topic, number> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
  try {
    return Object.fromEntries(topics.map(topic => [topic, endOf(db, topic)])) as Record<Topic, number>
  } finally {
    db.close()
  }
}
