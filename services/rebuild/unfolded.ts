/**
 * What the live projectors have inserted and the live fold has not folded when the tables are swapped. The fold is paused then, and
 * the projectors go on. So the tables that become the previous ones may have it in their ledger only. A rollback reads the
 * log from the projectors' positions on, behind these events. So their campaigns are noted as a batch that the previous tables have
 * not folded, and the rollback folds it.
 */
import { unfolded } from '../projector/fold/batch-conditions.ts'
import { readLongRuns } from '../projector/fold/fold-progress.ts'
import { nameDatabases } from '../shared/tables/migrate.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import { shadowOf } from './shadow-tables.ts'

const file = readSql('note-unfolded', import.meta.url)
const projectorPrefix = 'unfolded/'

/**
 * Notes it, while the fold is paused. The positions from which a rollback reads have to be read before. If the swap fails, the
 * shadow tables fold these campaigns once more than needed.
 */
export async function noteUnfolded(tables: Tables, databases: Databases, id: string): Promise<void> {
  const { condition, parameters } = unfolded(databases, await readLongRuns(tables, databases))
  await tables.run({
    query: nameDatabases(file, shadowOf(databases))
      .replaceAll('${live}', databases.model)
      .replaceAll('${unfolded}', condition),
    query_params: { ...parameters, projector: `${projectorPrefix}${id}` },
  })
}

/** The campaigns that were noted, at any swap. */
export async function readUnfolded(tables: Tables, databases: Databases): Promise<string[]> {
  const rows = await tables.rows<{ id: string }>({
    query: `SELECT DISTINCT arrayJoin(campaign_ids) AS id FROM ${shadowOf(databases).model}.batch_log
            WHERE startsWith(projector, {prefix:String})`,
    query_params: { prefix: projectorPrefix },
  })
  return rows.map(({ id }) => id)
}
