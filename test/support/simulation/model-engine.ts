/** ClickHouse as a model in memory: the statements that the simulation knows, and nothing else. */
import type { Statement } from '../../../services/shared/tables/port.ts'
import { type Engine, isOfFirstBlock } from './engine.ts'
import {
  confirmedFold,
  epochHolders,
  foldedRows,
  pendingBatches,
  progressRows,
  recordFold,
  restampedRows,
  takeEpoch,
} from './model-fold.ts'
import {
  changedEntries,
  changesRows,
  type ListRules,
  nextEntries,
  projectRows,
  snapshotRows,
} from './model-lists.ts'
import { emptyState, insertInto, type ModelState, type ReadRow } from './model-state.ts'
import type { KindOf } from './statement-kinds.ts'

export interface ModelEngineSettings extends ListRules {
  kindOf: KindOf
  /** Whether statements that stamp anew write anything. */
  isRestamping: boolean
}

export function createModelEngine(settings: ModelEngineSettings): Engine {
  const state = emptyState()
  const { kindOf, isRestamping } = settings

  return {
    read: async (statement, startedAt) => read(state, settings, { statement, startedAt, kindOf }),

    async stage(statement, kind, startedAt) {
      const rows =
        kind === 'fold'
          ? foldedRows(state, statement, startedAt)
          : restampedRows(state, statement, startedAt).filter(() => isRestamping)
      return {
        async publish({ onlySome = false } = {}) {
          for (const row of rows) if (!onlySome || isOfFirstBlock(row.id)) show(state, row)
        },
      }
    },

    async run(statement, kind) {
      if (kind === 'record') recordFold(state, statement)
      else takeEpoch(state, statement)
    },

    insert: async insert => insertInto(state, insert),
  }
}

function show({ campaigns }: ModelState, row: ReadRow): void {
  const rows = campaigns.get(row.id)
  if (rows === undefined) campaigns.set(row.id, [row])
  else rows.push(row)
}

function read(
  state: ModelState,
  rules: ListRules,
  { statement, startedAt, kindOf }: { statement: Statement; startedAt: number; kindOf: KindOf },
): object[] {
  const kind = kindOf(statement)
  switch (kind) {
    case 'pending batches':
      return pendingBatches(state, statement)
    case 'progress':
      return progressRows(state)
    case 'confirmed fold':
      return confirmedFold(state)
    case 'epoch holders':
      return epochHolders(state)
    case 'snapshot':
      return snapshotRows(state, statement, startedAt, rules)
    case 'projects':
      return projectRows(state, statement)
    case 'changes':
      return changesRows(state, statement, startedAt)
    case 'changed entries':
      return changedEntries(state, statement)
    case 'next entries':
      return nextEntries(state, statement)
    case 'fold':
    case 'restamp':
    case 'record':
    case 'take epoch':
      throw new Error(`${kind} is no statement that reads`)
    default:
      return kind satisfies never
  }
}
