/** The ends and positions of a journal, read from its file. */
import { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { endOf } from '../../../services/log/local/file.ts'
import { readPositions } from '../../../services/log/local/positions.ts'

/** The offset that the next record of each topic will get. */
export function journalEnds(path: string): Record<Topic, number> {
  return read(
    path,
    db => Object.fromEntries(topics.map(topic => [topic, endOf(db, topic)])) as Record<Topic, number>,
  )
}

/** The offset that a consumer reads next in each topic, as committed. */
export function journalPositions(path: string, consumer: string): Record<Topic, number> {
  return read(path, db => readPositions(db, consumer))
}

function read<T>(path: string, query: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
  try {
    return query(db)
  } finally {
    db.close()
  }
}
