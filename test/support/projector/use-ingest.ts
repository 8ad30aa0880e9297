/** The ingest loop on fresh tables, and what its suites read and await. */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { newRecordOf, smallWorld } from '../events/sample-events.ts'
import { type IngestSetup, type RunningIngest, startIngest } from './ingest-loop.ts'
import { createTestFoldWorker, readViews } from './model-tables.ts'
import { useFreshModel } from './use-model-tables.ts'

export const world = smallWorld()
export const worldEnds = { 'campaigns/0': 2, 'pledges/0': 2, 'api-keys/0': 1 }
// Only a hang takes this long, also while a slow disk holds up every insert.
export const soon = { timeout: 60_000 }

export function recordsOf(events: readonly ChangeEvent[]): NewRecord[] {
  return events.map(newRecordOf)
}

export function useIngest() {
  const model = useFreshModel()
  return {
    model,
    start: (setup: Omit<IngestSetup, 'databases'>): RunningIngest =>
      startIngest({ ...setup, databases: model.databases }),
    /** What the views say once what is in the ledger is folded. */
    async foldedReading(): Promise<unknown> {
      const { foldWorker } = createTestFoldWorker(model.tables, model.databases)
      await foldWorker.acquireLeadership()
      await foldWorker.fold()
      return readViews(model.tables, model.databases)
    },
  }
}
