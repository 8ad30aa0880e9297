/**
 * Compacts the journal's state topics: of each key, only the record that was appended last stays, and a tombstone for a week,
 * as on Kafka. A process that has a topic open is not disturbed: it has read what is removed, or reads what replaces it.
 */
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { portalTopics } from '../../../../contracts/events/portal-event.ts'
import { inWriteTransaction } from './file.ts'
import { stateTable } from './state-topic.ts'

const tombstoneMs = 7 * 86_400_000
const removedPerTransaction = 2_000

/** How many records were removed; in a dry run, how many would be. Run it with SQLite's `secure_delete`. */
export async function compactStates(
  db: DatabaseSync,
  path: string,
  { isDry, now }: { isDry: boolean; now: number },
): Promise<number> {
  let removed = 0
  for (const topic of portalTopics) {
    const table = stateTable[topic]
    // A process that opens a state topic makes the tables.
    if (!db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get(table)) continue
    const offsets = db
      .prepare(
        `SELECT offset FROM
           (SELECT offset, key, appended_at, value IS NULL AS is_tombstone,
              max(offset) OVER (PARTITION BY key) AS newest FROM ${table})
         WHERE key IS NULL OR offset < newest OR (is_tombstone AND appended_at < ?)
         ORDER BY offset`,
      )
      .all(now - tombstoneMs)
      .map(({ offset }) => Number(offset))
    removed += offsets.length
    if (!isDry) await removeRecords(db, path, table, offsets)
  }
  return removed
}

async function removeRecords(
  db: DatabaseSync,
  path: string,
  table: string,
  offsets: readonly number[],
): Promise<void> {
  const record = db.prepare(`DELETE FROM ${table} WHERE offset = ?`)
  for (let from = 0; from < offsets.length; from += removedPerTransaction) {
    await inWriteTransaction(db, path, () => {
      for (const offset of offsets.slice(from, from + removedPerTransaction)) record.run(offset)
    })
    await yieldToEventLoop()
  }
}
