/** The journal's history, for a rebuild. */
import { topics } from '../../../contracts/events/event.ts'
import type { History } from '../port.ts'
import { endOf, inWriteTransaction, onlyPartition, openJournalFile } from './file.ts'
import { openJournalReader } from './journal.ts'

export async function openJournalHistory(path: string): Promise<History> {
  const db = await openJournalFile(path)

  return {
    open: (consumer, starts) => openJournalReader(path, { consumer, starts }),

    async forget(consumer) {
      await inWriteTransaction(db, path, () => {
        db.prepare('DELETE FROM positions WHERE consumer = ?').run(consumer)
        db.prepare('DELETE FROM consumers WHERE name = ?').run(consumer)
      })
    },

    async ends() {
      return topics.map(topic => ({ topic, partition: onlyPartition, next: endOf(db, topic) }))
    },

    async close() {
      if (db.isOpen) db.close()
    },
  }
}
