/**
 * Verifies a new generation before its promotion: its read tables have to match its ledger, it has to contain everything
 * that the live tables contain, and it must not contain what the live tables have withdrawn.
 *
 * The sums are computed with other SQL than the fold's. Everything is done in ranges of campaign ids, because the pledges of
 * a platform do not fit into the memory of one statement.
 */

import type { EventReader } from '../../log/port.ts'
import { foldWorkerSettings } from '../../projector/fold/fold-settings.ts'
import { idParts } from '../../tables/parameter-parts.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { catchUp } from '../build/ingest.ts'
import { conditionOf, idsPerStatement, rangesOf, type Scope } from '../build/scope.ts'
import { onEach } from '../cluster.ts'
import type { RebuildContext } from '../context.ts'
import type { RebuildPart } from '../parts.ts'
import { lossesOf, type Missing, placeOf, readMissing, stillMissing } from './missing.ts'

const mismatchesMax = 10
// A loss stays a loss, however often it catches up. Nothing is refused for what was only late.
const catchUpsMax = 2

/** The rebuilt tables are not as they have to be. Nothing was promoted. */
export class VerificationFailed extends Error {
  override name = 'VerificationFailed'
  readonly mismatches: readonly Mismatch[]

  constructor(message: string, mismatches: readonly Mismatch[]) {
    const lines = mismatches.slice(0, 10).map(({ place, reason }) => `\n  ${place} ${reason}`)
    super(`${message}${lines.join('')}`)
    this.mismatches = mismatches
  }
}

/** Verifies everything, while nothing else writes to the new generation. Throws `VerificationFailed`. */
export async function verifyAll(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, signal, parts } = context
  for (const { touched } of parts) touched.take()
  const ranges = await onEach(parts, ({ tables, rebuilt }) => rangesOf(tables, rebuilt))
  const of = ranges.flat().length
  let done = 0
  const missing = await onEach(parts, async part => {
    const found: Missing[] = []
    for (const range of ranges[parts.indexOf(part)] ?? []) {
      signal.throwIfAborted()
      tracker.progress({ done, of, unit: 'ranges' })
      found.push(...(await verifyRange(context, part, range)))
      done++
    }
    return { part, found }
  })
  // The live projectors may be ahead. So only what is still missing after the new generation has caught up is lost.
  let lost: readonly { part: RebuildPart; found: readonly Missing[] }[] = missing
  for (let round = 1; lost.some(({ found }) => found.length > 0) && round <= catchUpsMax; round++) {
    await onEach(parts, part => part.withdrawals.carry(signal))
    await catchUp(context, reader)
    lost = await onEach(lost, async ({ part, found }) => ({
      part,
      found: await stillMissing(part.tables, part, found),
    }))
  }
  const all = lost.flatMap(({ found }) => found)
  mustNotReturn(all.filter(({ isWithdrawn }) => isWithdrawn))
  mustBeAccepted(context, all)
}

/** Throws if the read tables of the range do not match their ledger. Returns what the live tables have and the rebuilt do not. */
async function verifyRange(context: RebuildContext, part: RebuildPart, range: Scope): Promise<Missing[]> {
  const { tables, rebuilt } = part
  // A rollback returns to the generation from before with any faults that a fold leaves in them.
  if (context.tracker.detail.request.kind === 'rebuild') {
    mustFit(await verifyReadTables(tables, rebuilt, range, foldWorkerSettings(context.config)))
  }
  return readMissing(tables, part, range)
}

/** What the live tables have withdrawn is never shown again, whatever loss is accepted. */
function mustNotReturn(returned: readonly Missing[]): void {
  if (returned.length === 0) return
  throw new VerificationFailed(
    `the rebuilt tables contain what the live tables have deleted or hidden, in ${returned.length} places; nothing was ` +
      'promoted. The first places:',
    returned.map(missing => ({ place: placeOf(missing), reason: 'is deleted or hidden in the live tables' })),
  )
}

function mustBeAccepted({ tracker, logger }: RebuildContext, lost: readonly Missing[]): void {
  if (lost.length === 0) return
  const places = lossesOf(lost)
  const message = `the live tables contain more than the history that was read, in ${places.length} places`
  if (!tracker.detail.request.acceptsLoss) {
    throw new VerificationFailed(
      `${message}; nothing was promoted. If you accept that loss, run it again with --accept-loss. The first places:`,
      places,
    )
  }
  logger.warn({ places: places.length, first: places[0] }, message)
}

function mustFit(mismatches: readonly Mismatch[]): void {
  if (mismatches.length === 0) return
  throw new VerificationFailed(
    'the rebuilt read tables do not match their ledger; nothing was promoted. The first places:',
    mismatches,
  )
}

/** Verifies the campaigns that were folded since everything was verified. `others`: those that the log does not name. */
export async function verifyTouched(
  context: RebuildContext,
  part: RebuildPart,
  others: readonly string[],
): Promise<void> {
  const { config } = context
  const { tables, rebuilt } = part
  // Of all shards. A campaign of another one is in neither table here.
  const touched = [...new Set([...part.touched.take(), ...others])]
  for (const ids of idParts(touched, idsPerStatement)) {
    mustFit(await verifyReadTables(tables, rebuilt, { ids }, foldWorkerSettings(config)))
  }
}

export interface Mismatch {
  /** For example `campaign 12`. */
  place: string
  reason: string
}

interface ReadRow {
  campaign_id: string
  is_public: number
  is_shown: number
  shown_pledges: string
  pledges: string
  shown_backers: string
  backers: string
  shown_amount: string
  amount: string
  shown_platform_amount: string
  platform_amount: string
}

/** Compares what the read tables show of these campaigns with the sums of the ledger. Returns the first mismatches. */
async function verifyReadTables(
  tables: Tables,
  { ledger, read }: Databases,
  scope: Scope,
  { platformDigits }: { platformDigits: number },
): Promise<Mismatch[]> {
  const { condition, parameters } = conditionOf(scope)
  const minor = (digits: string) => `toDecimal256(pow(10, ${digits}), 0)`
  const rows = await tables.rows<ReadRow>({
    query: `SELECT campaign_id, max(is_public) AS is_public, max(is_shown) AS is_shown,
        toString(sum(shown_pledges)) AS shown_pledges, toString(sum(pledges)) AS pledges,
        toString(sum(shown_backers)) AS shown_backers, toString(sum(backers)) AS backers,
        toString(sum(shown_amount)) AS shown_amount, toString(sum(minor_amount) / ${minor('max(digits)')}) AS amount,
        toString(sum(shown_platform_amount)) AS shown_platform_amount,
        toString(sum(minor_platform_amount) / ${minor('{platform_digits:UInt8}')}) AS platform_amount
      FROM
      (
        SELECT campaign_id, toUInt8(is_public) AS is_public, 0 AS is_shown, currency_digits AS digits,
          0 AS shown_pledges, 0 AS pledges, 0 AS shown_backers, 0 AS backers,
          toDecimal256(0, 4) AS shown_amount, toDecimal256(0, 4) AS minor_amount,
          toDecimal256(0, 4) AS shown_platform_amount, toDecimal256(0, 4) AS minor_platform_amount
        FROM ${ledger}.campaign_ledger FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 1, 0, pledge_count, 0, backer_count, 0,
          toDecimal256(pledged_amount, 4), toDecimal256(0, 4), toDecimal256(pledged_platform_amount, 4), toDecimal256(0, 4)
        FROM ${read}.campaigns FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 0, 0, 0, count(), 0, uniqExact(backer_hash),
          toDecimal256(0, 4), toDecimal256(sum(toInt256(amount_minor)), 4),
          toDecimal256(0, 4), toDecimal256(sum(toInt256(platform_amount_minor)), 4)
        FROM ${ledger}.pledge_ledger FINAL WHERE counts AND ${condition} GROUP BY campaign_id
      )
      GROUP BY campaign_id
      HAVING is_public != is_shown OR (is_shown = 1 AND (shown_pledges != pledges OR shown_backers != backers
        OR toDecimal256(shown_amount, 4) != toDecimal256(amount, 4)
        OR toDecimal256(shown_platform_amount, 4) != toDecimal256(platform_amount, 4)))
      ORDER BY campaign_id LIMIT ${mismatchesMax}`,
    query_params: { ...parameters, platform_digits: platformDigits },
  })
  return rows.map(row => ({ place: `campaign ${row.campaign_id}`, reason: readReason(row) }))
}

function readReason(row: ReadRow): string {
  if (row.is_public !== row.is_shown)
    return row.is_public ? 'is public but is not shown' : 'is shown but is not public'
  const pairs = [
    ['pledges', row.shown_pledges, row.pledges],
    ['backers', row.shown_backers, row.backers],
    ['an amount of', row.shown_amount, row.amount],
    ['a platform amount of', row.shown_platform_amount, row.platform_amount],
  ] as const
  const wrong = pairs.filter(([, shown, is]) => Number(shown) !== Number(is) || shown !== is)
  return `shows ${wrong.map(([what, shown, is]) => `${what} ${shown}, but its ledger says ${is}`).join('; ')}`
}
