/** The positions of the journal's consumers, and the watermark that is remembered beside them. */
import type { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import type { Position, RememberedWatermark } from '../port.ts'
import { firstOffset, onlyPartition } from './file.ts'

const upsert = `INSERT INTO positions (consumer, topic, partition, next) VALUES (?, ?, ?, ?)
  ON CONFLICT (consumer, topic, partition) DO UPDATE SET next = max(next, excluded.next)`

/** The committed offset to read next in each topic; the first offset if none was committed. */
export function readPositions(db: DatabaseSync, consumer: string): Record<Topic, number> {
  const next = Object.fromEntries(topics.map(topic => [topic, firstOffset])) as Record<Topic, number>
  for (const row of db.prepare('SELECT topic, next FROM positions WHERE consumer = ?').all(consumer)) {
    const topic = topics.find(known => known === row.topic)
    if (topic) next[topic] = Number(row.next)
  }
  return next
}

// In the place of a topic. They are stored as positions are: they never go back, and are forgotten with the others.
const watermarkRow = 'watermark'
const shownRow = 'shown watermark'

/** Stores what is higher than before, and returns the highest. Run it inside a write transaction. */
export function storeWatermark(
  db: DatabaseSync,
  consumer: string,
  { watermark, shown }: RememberedWatermark,
): RememberedWatermark {
  const highest = (row: string, value: number) =>
    Number(db.prepare(`${upsert} RETURNING next`).get(consumer, row, onlyPartition, value)?.next)
  return { watermark: highest(watermarkRow, watermark), shown: highest(shownRow, shown) }
}

/** Stores positions. A position that is behind the stored one changes nothing. Run it inside a write transaction. */
export function storePositions(db: DatabaseSync, consumer: string, positions: readonly Position[]): void {
  const statement = db.prepare(upsert)
  for (const { topic, partition, next } of positions) {
    if (partition !== onlyPartition) throw new Error(`the journal has no partition ${partition} of ${topic}`)
    statement.run(consumer, topic, partition, next)
  }
}
