/**
 * Purges what campaigns that are set aside leave behind: rows that were staged, and what these campaigns last showed.
 *
 * A leader drops the rows that it has staged. A leader that was killed leaves its row, and no later leader shows it: a row is
 * shown only in the term in which it was staged.
 */
import type { Databases, Tables } from '../shared/tables/port.ts'
import { oldPartsMs } from '../shared/tables/superseded.ts'
import { counted, leftOver, type PurgedCopy, purged, unreached } from './report.ts'
import { readParts, type TablesPurge, untilGone, withQuickRemoval } from './tables.ts'

interface Staged {
  stagedId: string
  /** Whether a later leader folds by now. */
  isOver: boolean
}

const table = 'staged_campaigns'
const copy = `table ${table}`
// The table's TTL, and how long ClickHouse may wait before it applies the TTL (contracts/tables/0011-set-aside.sql).
const stagedMsMax = 86_400_000 + 600_000

/** No entry if no row was staged lately, and no campaign is set aside. */
export async function purgeSetAside(
  tables: Tables,
  databases: Databases,
  purge: TablesPurge,
): Promise<PurgedCopy[]> {
  return [...(await purgeStaged(tables, databases, purge)), ...(await setAsideCopies(tables, databases))]
}

async function purgeStaged(tables: Tables, databases: Databases, purge: TablesPurge): Promise<PurgedCopy[]> {
  const parts = await readParts(tables, databases, table)
  if (parts.length === 0) return []
  const staged = await readStaged(tables, databases)
  const over = staged.filter(({ isOver }) => isOver)
  const dropped = counted(over.length, 'row')
  if (purge.isDry) return [purged(copy, `drops ${dropped}`)]
  const isGone = await withQuickRemoval(tables, databases, [table], async () => {
    for (const { stagedId } of over) {
      await tables.run({ query: `ALTER TABLE ${databases.model}.${table} DROP PARTITION ${stagedId}` })
    }
    const kept = new Set(staged.filter(({ isOver }) => !isOver).map(({ stagedId }) => stagedId))
    // The name of a part begins with its partition.
    const names = parts.map(({ name }) => name).filter(name => !kept.has(name.split('_')[0] ?? ''))
    return untilGone(tables, databases, { table, names }, purge)
  })
  const done = `dropped ${dropped}`
  if (!isGone) return [leftOver(copy, done, 'files of dropped rows', purge.now() + oldPartsMs)]
  if (over.length === staged.length) return [purged(copy, done)]
  const left = 'the row of a campaign that is folded alone at this moment'
  return [leftOver(copy, done, left, purge.now() + stagedMsMax + oldPartsMs)]
}

function readStaged(tables: Tables, { model }: Databases): Promise<Staged[]> {
  return tables.rows<Staged>({
    query: `SELECT DISTINCT toString(fold_id) AS stagedId,
              bitShiftRight(fold_id, 32) < (SELECT max(epoch) FROM ${model}.fold_epochs) AS isOver
            FROM ${model}.${table} ORDER BY stagedId`,
  })
}

/** A campaign that is set aside shows what it last was until it is folded alone. */
async function setAsideCopies(tables: Tables, { model }: Databases): Promise<PurgedCopy[]> {
  const campaigns = await tables.rows<{ id: string; isBehind: boolean }>({
    query: `SELECT campaign_id AS id, is_behind AS isBehind
            FROM ${model}.set_aside FINAL WHERE is_set_aside ORDER BY id`,
  })
  return campaigns.map(({ id, isBehind }) =>
    isBehind
      ? unreached(
          `campaign ${id}`,
          'it is set aside: what it last showed stays visible until it can be folded',
        )
      : leftOver(
          `campaign ${id}`,
          'nothing',
          'what changed since its last fold: it is set aside, so run the purge again after some minutes',
          null,
        ),
  )
}
