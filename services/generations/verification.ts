/**
 * Verifies a new generation before its promotion: its read tables have to match its ledger, it has to contain everything
 * that the live tables contain, and it must not contain what the live tables have withdrawn.
 *
 * The sums are computed with other SQL than the fold's. Everything is done in ranges of campaign ids, because the pledges of
 * a platform do not fit into the memory of one statement.
 */
import type { EventReader } from '../log/port.ts'
import { platformDigitsOf } from '../projector/fold/fold-statements.ts'
import { onEach, type RebuildContext, type RebuildShard } from './context.ts'
import { catchUp } from './ingest.ts'
import { type Missing, rangesOf, readMissing, type Scope, stillMissing } from './withdrawals.ts'

const mismatchesMax = 10
// Records that were only late are found after two catch-ups. What is still missing then is lost.
const catchUpsMax = 2

/** The rebuilt tables are not as they have to be. Nothing was promoted. */
export class VerificationFailed extends Error {
  override name = 'VerificationFailed'

  constructor(message: string, mismatches: readonly Mismatch[]) {
    const lines = mismatches.slice(0, 10).map(({ place, reason }) => `\n  ${place} ${reason}`)
    super(`${message}${lines.join('')}`)
  }
}

/** Verifies everything, while nothing else writes to the new generation. Throws `VerificationFailed`. */
export async function verifyAll(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, signal, shards } = context
  const ranges = await onEach(shards, async shard => ({
    shard,
    scopes: await rangesOf(shard.tables, shard.rebuilt),
  }))
  const of = ranges.flatMap(({ scopes }) => scopes).length
  let done = 0
  // The live projectors may be ahead. So only what is still missing after the new generation has caught up is lost.
  let lost = await onEach(ranges, async ({ shard, scopes }) => {
    const found: Missing[] = []
    for (const scope of scopes) {
      signal.throwIfAborted()
      tracker.progress({ done, of, unit: 'ranges' })
      await verifyReadTables(context, shard, scope)
      found.push(...(await readMissing(shard, scope)))
      done++
    }
    return { shard, found }
  })
  for (let round = 1; lost.some(({ found }) => found.length > 0) && round <= catchUpsMax; round++) {
    await onEach(shards, shard => shard.carryWithdrawals(signal))
    await catchUp(context, reader)
    lost = await onEach(lost, async ({ shard, found }) => ({
      shard,
      found: await stillMissing(shard, found),
    }))
  }
  const all = lost.flatMap(({ found }) => found)
  mustNotReturn(all.filter(({ isWithdrawn }) => isWithdrawn))
  mustBeAccepted(context, all)
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

interface Mismatch {
  /** For example `campaign 12`. */
  place: string
  reason: string
}

/**
 * Compares what the read tables show of these campaigns with the sums of the ledger. A rollback returns to the generation from before with
 * any faults that a fold left in them.
 */
export async function verifyReadTables(
  { config, tracker }: RebuildContext,
  { tables, rebuilt: { ledger, read } }: RebuildShard,
  { condition, parameters }: Scope,
): Promise<void> {
  if (tracker.detail.request.kind === 'rollback') return
  const minor = (sum: string, digits: string) =>
    `toDecimal256(toDecimal256(sum(${sum}), 4) / toDecimal256(pow(10, ${digits}), 0), 4)`
  const shown = (sum: string) => `toDecimal256(sum(${sum}), 4)`
  const mismatches = await tables.rows<Mismatch>({
    query: `SELECT concat('campaign ', campaign_id) AS place,
        multiIf(max(is_public) > max(is_shown), 'is public but is not shown',
          max(is_public) < max(is_shown), 'is shown but is not public',
          concat('shows ', arrayStringConcat(wrong, '; '))) AS reason,
        arrayMap(sum -> concat(sum.1, ' ', sum.2, ', but its ledger says ', sum.3), arrayFilter(sum -> sum.2 != sum.3, [
          ('pledges', toString(sum(shown_pledges)), toString(sum(pledges))),
          ('backers', toString(sum(shown_backers)), toString(sum(backers))),
          ('an amount of', toString(${shown('shown_amount')}), toString(${minor('amount', 'max(digits)')})),
          ('a platform amount of', toString(${shown('shown_platform_amount')}),
            toString(${minor('platform_amount', '{platform_digits:UInt8}')}))
        ])) AS wrong
      FROM
      (
        SELECT campaign_id, toUInt8(is_public) AS is_public, 0 AS is_shown, currency_digits AS digits,
          0 AS shown_pledges, 0 AS pledges, 0 AS shown_backers, 0 AS backers, toDecimal256(0, 4) AS shown_amount,
          toInt256(0) AS amount, toDecimal256(0, 4) AS shown_platform_amount, toInt256(0) AS platform_amount
        FROM ${ledger}.campaign_ledger FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 1, 0, pledge_count, 0, backer_count, 0, toDecimal256(pledged_amount, 4), 0,
          toDecimal256(pledged_platform_amount, 4), 0
        FROM ${read}.campaigns FINAL WHERE ${condition}
        UNION ALL
        SELECT campaign_id, 0, 0, 0, 0, count(), 0, uniqExact(backer_hash), 0, sum(toInt256(amount_minor)),
          0, sum(toInt256(platform_amount_minor))
        FROM ${ledger}.pledge_ledger FINAL WHERE counts AND ${condition} GROUP BY campaign_id
      )
      GROUP BY campaign_id
      HAVING max(is_public) != max(is_shown) OR (max(is_shown) = 1 AND notEmpty(wrong))
      ORDER BY campaign_id LIMIT ${mismatchesMax}`,
    query_params: { ...parameters, platform_digits: platformDigitsOf(config) },
  })
  if (mismatches.length === 0) return
  throw new VerificationFailed(
    'the rebuilt read tables do not match their ledger; nothing was promoted. The first places:',
    mismatches,
  )
}

/** The places for a message. Pledges are counted by campaign. */
function lossesOf(lost: readonly Missing[]): Mismatch[] {
  const isUnknown = ({ rebuiltVersion }: Missing) => rebuiltVersion === '-1'
  const byPlace = Map.groupBy(lost, missing => `${placeOf(missing)} ${isUnknown(missing)}`)
  return [...byPlace.values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { isPledge } = first
    const reason = isUnknown(first)
      ? `${isPledge ? 'are' : 'is'} in the live tables, but not in the history that was read`
      : `${isPledge ? 'have' : 'has'} newer versions in the live tables than in the history that was read`
    return [
      { place: placeOf(first), reason: `${reason}${isPledge ? ` (${others.length + 1} of them)` : ''}` },
    ]
  })
}

/** For example `campaign 12`. */
function placeOf({ isPledge, campaign }: Missing): string {
  return `${isPledge ? 'pledges of campaign' : 'campaign'} ${campaign}`
}
