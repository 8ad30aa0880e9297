/** ClickHouse as a model in memory. It knows only the statements of the simulation. */
import type { Statement } from '../../../../services/tables/port.ts'
import { allSafeguards, type Safeguards } from '../safeguards.ts'
import type { Engine } from './engine.ts'
import * as fold from './model-fold.ts'
import * as lists from './model-lists.ts'
import { emptyState, insertInto, type ModelState } from './model-state.ts'
import type { KindOf, ReadKind, StatementKind } from './statement-kinds.ts'

type Read = (state: ModelState, statement: Statement, startedAt: number, safeguards: Safeguards) => object[]

// What runs is known to the world (clickhouse.ts).
const reads: Readonly<Record<Exclude<ReadKind, 'running'>, Read>> = {
  'pending batches': fold.pendingBatches,
  // There are none in the simulation.
  'long runs': () => [],
  'epoch holders': fold.epochHolders,
  'holds epoch': fold.holdsEpoch,
  clock: (state, _, now) => [{ now, watermark: state.watermark, ...fold.leaderOf(state) }],
  'history marks': fold.historyMarks,
  'piece campaigns': fold.pieceCampaigns,
  quarantine: fold.quarantineRows,
  snapshot: lists.snapshotRows,
  removals: lists.removalsRows,
  projects: lists.projectRows,
  changes: lists.changesRows,
  'changed entries': lists.changedEntries,
  'next entries': lists.nextEntries,
}
const readsByKind = new Map<StatementKind, Read>(Object.entries(reads) as [ReadKind, Read][])

export function createModelEngine(kindOf: KindOf, safeguards: Safeguards = allSafeguards): Engine {
  const state = emptyState()
  return {
    async read(statement, startedAt) {
      const read = readsByKind.get(kindOf(statement))
      if (!read) throw new Error(`the model does not read: ${kindOf(statement)}`)
      return read(state, statement, startedAt, safeguards)
    },

    async stage(statement, kind, startedAt) {
      const publish = fold.writtenBy(state, safeguards, { statement, kind, startedAt })
      return async onlySome => publish(onlySome)
    },

    touchedBy: async statement => fold.touchedIds(state, statement),

    insert: async insert => insertInto(state, insert),
  }
}
