/** ClickHouse as a model in memory. It knows only the statements of the simulation. */
import { type Statement, TablesError } from '../../../services/shared/tables/port.ts'
import { type Engine, isOfFirstBlock } from './engine.ts'
import {
  advanceFloor,
  closedDays,
  confirmedFold,
  dropStaged,
  epochHolders,
  foldedRows,
  leaderOf,
  pendingBatches,
  pieceCampaigns,
  progressRows,
  publishedRows,
  recordClose,
  recordFold,
  recordSetAside,
  restampedRows,
  setAsideRows,
  stageAlone,
  takeEpoch,
  touchedIds,
  touchedSetAside,
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
import { type CampaignWriteKind, type KindOf, untilOf, type WriteKind } from './statement-kinds.ts'

export interface ModelEngineSettings extends ListRules {
  kindOf: KindOf
  /** Whether restamp statements write anything. */
  isRestamping: boolean
  /** Whether stamps and watermarks keep to the stamp floor. */
  hasFloor: boolean
}

export function createModelEngine(settings: ModelEngineSettings): Engine {
  const state = emptyState()
  const { kindOf } = settings

  return {
    read: async (statement, startedAt) => read(state, settings, { statement, startedAt, kindOf }),

    async stage(statement, kind, startedAt) {
      const rows = stagedRows(state, settings, {
        statement,
        kind,
        stamp: Math.max(startedAt, state.floor ?? 0),
      })
      return {
        rows: rows.length,
        async publish({ onlySome = false } = {}) {
          for (const row of rows) if (!onlySome || isOfFirstBlock(row.id)) show(state, row)
        },
      }
    },

    async run(statement, kind, startedAt) {
      if (kind !== 'advance floor') writeSmall[kind](state, statement)
      else if (settings.hasFloor) advanceFloor(state, statement, startedAt)
    },

    touchedBy: async statement => touchedIds(state, statement),

    insert: async insert => insertInto(state, insert),
  }
}

const writeSmall: Readonly<
  Record<
    Exclude<WriteKind, CampaignWriteKind | 'advance floor'>,
    (state: ModelState, statement: Statement) => void
  >
> = {
  record: recordFold,
  'take epoch': takeEpoch,
  'fold alone': stageAlone,
  'drop staged': dropStaged,
  'record set aside': recordSetAside,
  'record close': recordClose,
  // The simulation reads nothing of the history.
  'close days': () => {},
  'note latest days': () => {},
}

function stagedRows(
  state: ModelState,
  { isRestamping }: ModelEngineSettings,
  { statement, kind, stamp }: { statement: Statement; kind: CampaignWriteKind; stamp: number },
): ReadRow[] {
  if (stamp >= untilOf(statement)) {
    throw new TablesError('the day is over', {
      retryable: false,
      type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
    })
  }
  switch (kind) {
    case 'fold':
      return foldedRows(state, statement, stamp)
    case 'publish':
      return publishedRows(state, statement, stamp)
    case 'restamp':
      return isRestamping ? restampedRows(state, statement, stamp) : []
    case 'until decided':
      return []
    default:
      return kind satisfies never
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
    case 'stamp clock':
      return [{ now: startedAt, floor: state.floor ?? 0, ...leaderOf(state) }]
    case 'closed days':
      return closedDays(state)
    case 'piece campaigns':
      return pieceCampaigns(state, statement)
    case 'set aside':
      return setAsideRows(state)
    case 'touched set aside':
      return touchedSetAside(state, statement)
    // There are no keys in the simulation.
    case 'pending keys':
      return []
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
    case 'publish':
    case 'until decided':
    case 'fold alone':
    case 'drop staged':
    case 'record set aside':
    case 'record':
    case 'take epoch':
    case 'advance floor':
    case 'close days':
    case 'note latest days':
    case 'record close':
      throw new Error(`${kind} is no statement that reads`)
    default:
      return kind satisfies never
  }
}
