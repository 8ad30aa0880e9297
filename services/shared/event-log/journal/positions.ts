/** The positions of the journal's consumers. */
import type { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import type { Position } from '../port.ts'
import { firstOffset, onlyPartition } from './file.ts'

/** The committed offset to read next in each topic; the first offset if none was committed. */
export function readPositions(db: DatabaseSync, consumer: string): Record<Topic, number> {
  const next: Record<Topic, number> = {
    campaigns: firstOffset,
    pledges: firstOffset,
    'api-keys': firstOffset,
  }
  for (const row of db.prepare('SELECT topic, next FROM positions WHERE consumer = ?').all(consumer)) {
    const topic = topics.find(known => known === row.topic)
    if (topic) next[topic] = Number(row.next)
  }
  return next
}

/** Stores positions. A position that is behind the stored one changes nothing. Run it inside a write transaction. */
export function storePositions(db: DatabaseSync, consumer: string, positions: readonly Position[]): void {
  const statement = db.prepare(
    `INSERT INTO positions (consumer, topic, partition, next) VALUES (?, ?, ?, ?)
     ON CONFLICT (consumer, topic, partition) DO UPDATE SET next = max(next, excluded.next)`,
  )
  for (const { topic, partition, next } of positions) {
    if (partition !== onlyPartition) throw new Error(`the journal has no partition ${partition} of ${topic}`)
    statement.run(consumer, topic, partition, next)
  }
}
