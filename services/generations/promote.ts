/**
 * The promotion: holds the fold of the current generation, brings the new one up to the end of the log, stamps it, and makes it the current
 * one by a single row.
 *
 * Promises:
 * - Everything that an answer from the current generation has shown is in the new one. The fold is held and earlier statements have ended
 *   before the end of the log is read that it has to reach.
 * - A row with the same content keeps its `updated_at`. A changed row gets a stamp at or above the watermark, which stands still until the
 *   projectors follow the row. So no poller misses a change, or fetches a campaign that is the same.
 * - If the current generation is a restored one that still has to be read again (restore.ts), no row keeps its stamp: a poller may have seen
 *   what the backup lacks.
 * - The row is written only if this attempt was not given up (attempts.ts). Until it is given up, no fold worker passes the hold. So a late
 *   row does no harm.
 * - After a kill, the current generation is the one from before or the new one, as a whole.
 */
import { contentColumns } from '../../contracts/tables/campaign-columns.ts'
import type { EventReader } from '../log/port.ts'
import {
  campaignsPerPiece,
  fill,
  noteGapStatement,
  stampOf,
  stepParameters,
} from '../projector/fold/fold-statements.ts'
import { readPositions, writePositions } from '../projector/positions/positions.ts'
import { isBeingRestored } from '../projector/positions/restore.ts'
import type { Databases } from '../tables/port.ts'
import { readSql } from '../tables/sql-text.ts'
import { promoteGeneration } from './attempts.ts'
import { enter, onEach, type RebuildContext, type RebuildShard } from './context.ts'
import { ingestToEnd } from './ingest.ts'
import { verifyReadTables } from './verification.ts'
import { changedSince, rangesOf, type Scope } from './withdrawals.ts'

/** Throws `AttemptLost`, or what the log and ClickHouse throw. Then nothing was promoted, unless the answer to the row was lost. */
export async function promote(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, generationLog, run, from, signal } = context
  await enter(context, 'promoting')
  await bringUp(context, reader)
  await carryReadUntil(context, reader.log)
  signal.throwIfAborted()
  await promoteGeneration(generationLog, { attempt: tracker.attempt, run, from, to: tracker.generation })
}

/** Brings every shard up to the end of the log under a held fold, and stamps it. */
async function bringUp(context: RebuildContext, reader: EventReader): Promise<void> {
  const { shards, signal } = context
  await onEach(shards, shard => shard.hold.acquireLeadership())
  await onEach(shards, shard => shard.foldWorker.acquireLeadership())
  await ingestToEnd(context, reader)
  // It is asked while the fold of the current generation is held.
  const asked = await onEach(context.shards, ({ tables, live }) =>
    isBeingRestored({ tables, databases: live }, reader.log),
  )
  const isRestored = asked.includes(true)
  await onEach(shards, async shard => {
    // What is deleted later than this is in the log behind its end, and is read after the promotion.
    await shard.carryWithdrawals(signal)
    await shard.foldWorker.fold()
    await verifyReadTables(context, shard, changedSince(shard.rebuilt, shard.compared))
    // The keys that the held worker had not folded yet: keys belong to no generation. This may write the watermark, so it comes before the stamps.
    await shard.hold.foldKeys()
    // A repeated statement that takes an epoch may arrive late.
    await shard.hold.mustHold()
    await stamp(shard, isRestored)
  })
}

const files = {
  stamp: readSql('stamp', import.meta.url),
  departures: readSql('departures', import.meta.url),
  // The watermark of a new generation begins where that of the current one stands. So no watermark that a list shows goes back.
  watermark: `INSERT INTO \${read}.watermarks (shard, reached)
              SELECT shard, max(reached) FROM \${live}.watermarks WHERE \${fence} GROUP BY shard
              SETTINGS max_execution_time = \${seconds_max}, async_insert = 0`,
}
const statementMsMax = 600_000

async function stamp(
  { tablesOnAllCores: tables, live, rebuilt, foldWorker }: RebuildShard,
  isRestored: boolean,
): Promise<void> {
  const nextStep = () => ({ ...foldWorker.nextStep(), msMax: statementMsMax })
  const run = (sql: string, { condition, parameters }: Scope) => {
    const step = nextStep()
    const query = fill(sql, rebuilt, step, {
      live: live.read,
      is_restored: String(isRestored),
      live_stamp: stampOf(live),
      scope: condition,
      row_columns: contentColumns.map(name => `row.${name}`).join(', '),
    })
    return tables.run({ query, query_params: { ...stepParameters(step), ...parameters } })
  }
  const ranges = await rangesOf(tables, live, campaignsPerPiece)
  for (const range of ranges) {
    await run(files.stamp, range)
    await run(files.departures, range)
  }
  await run(files.watermark, { condition: '1', parameters: {} })
  // Readers may have seen campaigns that neither generation knows. It comes after the watermark, because its stamp is above that.
  if (isRestored) await tables.run(noteGapStatement(rebuilt, nextStep()))
  await foldWorker.mustHold()
}

/** The new generation knows every deletion that the current one knows, so it is read as far in time. */
async function carryReadUntil({ shards }: RebuildContext, log: string): Promise<void> {
  for (const { tables, live, rebuilt } of shards) {
    const read = async (databases: Databases) => (await readPositions([{ tables, databases }], log)).ofLog
    const [before, after] = await Promise.all([read(live), read(rebuilt)])
    const rows = [...after].flatMap(([name, row]) => {
      const was = before.get(name)
      return was ? [{ ...row, readUntil: Math.max(was.readUntil, row.readUntil) }] : []
    })
    await writePositions([{ tables, databases: rebuilt }], rows)
  }
}
