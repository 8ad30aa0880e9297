/**
 * What became of a retry. A reject is settled when the ledger has the version of its event, or a newer one. Until then it stays open, so a
 * retry that was killed, or whose records were rejected again, is simply repeated.
 */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { versionOf } from '../../projector/ingest/ledger-rows.ts'
import { idChunks } from '../../tables/clickhouse/statements.ts'
import { entityOf } from '../../tables/ledger-versions.ts'
import { settleRejects } from '../../tables/rejects.ts'
import {
  countReasons,
  type ReasonCount,
  type RejectFilter,
  walkRejects,
} from '../../tables/stored-rejects.ts'
import { isCut } from './show.ts'
import type { RejectSource } from './source.ts'

export interface Settlement {
  settled: number
  /** Valid events that the ledger does not have. */
  not_settled: number
  /** Why those were rejected again. What is missing here is not projected yet. */
  rejected_again: Pick<ReasonCount, 'reason' | 'count' | 'example'>[]
}

const reasonsMax = 20
// In one statement.
const entitiesMax = 1_000
const kindsMax = 1_000

/** Settles what it can of these rejects. `since`: when the retry began, Unix ms. */
export async function settle(
  { tables, databases, schemas, versions }: RejectSource,
  wanted: RejectFilter,
  since: number,
): Promise<Settlement> {
  const settlement: Settlement = { settled: 0, not_settled: 0, rejected_again: [] }
  const decode = createDecoder(schemas.known)
  for await (const rejects of walkRejects({ tables, databases }, wanted)) {
    const records = rejects
      .filter(reject => reject.rejectedAt < since && !isCut(reject))
      .map(({ record }) => record)
    await schemas.learn(records)
    const valid = records.flatMap(record => {
      const event = decode(record)
      return 'key' in event ? [{ record, event }] : []
    })
    const present = await versions(valid.map(({ event }) => event))
    const isSettled = ({ event }: { event: ChangeEvent }) =>
      (present.get(entityOf(event)) ?? -1n) >= versionOf(event)
    const settled = valid.filter(isSettled)
    const left = valid.filter(one => !isSettled(one))
    await settleRejects(
      tables,
      databases,
      settled.map(({ record }) => record),
    )
    settlement.settled += settled.length
    settlement.not_settled += left.length
    if (left.length === 0 || settlement.rejected_again.length > 0) continue
    const entities = new Set(left.map(({ event }) => entityOf(event)))
    settlement.rejected_again = await readReasons({ tables, databases }, [...entities], since)
  }
  return settlement
}

/** Why these were rejected since then, the most frequent reason first. */
async function readReasons(
  source: Pick<RejectSource, 'tables' | 'databases'>,
  entities: readonly string[],
  since: number,
): Promise<Settlement['rejected_again']> {
  const found = new Map<string, Settlement['rejected_again'][number]>()
  for (const some of idChunks(entities, entitiesMax)) {
    const { counts } = await countReasons(source, { since, entities: some }, kindsMax)
    for (const { reason, count, example } of counts) {
      const known = found.get(reason)
      if (known) known.count += count
      else found.set(reason, { reason, count, example })
    }
  }
  return [...found.values()].sort((a, b) => b.count - a.count).slice(0, reasonsMax)
}
