/**
 * What became of a retry. A reject is settled when the ledger has the version of its event, or a newer one. Until then it stays open, so a
 * retry that was killed, or whose records were rejected again, is simply repeated.
 */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { versionOf } from '../../projector/ingest/ledger-rows.ts'
import { entityOf } from '../../tables/ledger-versions.ts'
import { settleRejects } from '../../tables/rejects.ts'
import { type RejectFilter, walkRejects } from '../../tables/stored-rejects.ts'
import { isCut } from './show.ts'
import type { RejectSource } from './source.ts'

export interface Settlement {
  settled: number
  /** Valid events that the ledger does not have: rejected again, or not projected yet. */
  not_settled: number
}

/** Settles what it can of these rejects. Those from `since` on, Unix ms, came after what the retry has found. */
export async function settle(
  { tables, databases, schemas, versions }: RejectSource,
  wanted: RejectFilter,
  since: number,
): Promise<Settlement> {
  const settlement: Settlement = { settled: 0, not_settled: 0 }
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
    await settleRejects(
      tables,
      databases,
      settled.map(({ record }) => record),
    )
    settlement.settled += settled.length
    settlement.not_settled += valid.length - settled.length
  }
  return settlement
}
