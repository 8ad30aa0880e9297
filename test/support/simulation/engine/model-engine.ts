/** ClickHouse as a model in memory. It knows only the statements of the simulation. */
import type { Statement } from '../../../../services/tables/port.ts'
import { allSafeguards, type Safeguards } from '../safeguards.ts'
import type { Engine } from './engine.ts'
import {
  epochHolders,
  historyMarks,
  holdsEpoch,
  leaderOf,
  pendingBatches,
  pieceCampaigns,
  quarantineRows,
  touchedIds,
  writtenBy,
} from './model-fold.ts'
import {
  changedEntries,
  changesRows,
  nextEntries,
  projectRows,
  removalsRows,
  snapshotRows,
} from './model-lists.ts'
import { emptyState, insertInto, type ModelState } from './model-state.ts'
import type { KindOf } from './statement-kinds.ts'

export function createModelEngine(kindOf: KindOf, safeguards: Safeguards = allSafeguards): Engine {
  const state = emptyState()
  return {
    async read(statement, startedAt) {
      return read(state, safeguards, { statement, startedAt, kind: kindOf(statement) })
    },

    async stage(statement, kind, startedAt) {
      const { rows, publish } = writtenBy(state, safeguards, { statement, kind, startedAt })
      return { rows, publish: async ({ onlySome = false } = {}) => publish(onlySome) }
    },

    touchedBy: async statement => touchedIds(state, statement),

    insert: async insert => insertInto(state, insert),
  }
}

function read(
  state: ModelState,
  safeguards: Safeguards,
  { statement, startedAt, kind }: { statement: Statement; startedAt: number; kind: ReturnType<KindOf> },
): object[] {
  switch (kind) {
    case 'pending batches':
      return pendingBatches(state)
    // There are none in the simulation.
    case 'long runs':
      return []
    case 'epoch holders':
      return epochHolders(state)
    case 'holds epoch':
      return holdsEpoch(state, statement)
    case 'clock':
      return [{ now: startedAt, watermark: state.watermark, ...leaderOf(state) }]
    case 'history marks':
      return historyMarks(state)
    case 'piece campaigns':
      return pieceCampaigns(state, statement)
    case 'quarantine':
      return quarantineRows(state)
    case 'snapshot':
      return snapshotRows(state, statement, startedAt, safeguards)
    case 'removals':
      return removalsRows(state, statement, startedAt, safeguards)
    case 'projects':
      return projectRows(state, statement)
    case 'changes':
      return changesRows(state, statement, startedAt, safeguards)
    case 'changed entries':
      return changedEntries(state, statement)
    case 'next entries':
      return nextEntries(state, statement)
    default:
      throw new Error(`the model does not read: ${kind}`)
  }
}
