/** A campaign that the common fold cannot fold within its bounds. */
import { chance, intBetween, pick, type Random } from '../runner/random.ts'

export type HeavyCampaign = NonNullable<ReturnType<typeof drawHeavyCampaign>>

/** How long a fold of a campaign in quarantine may take. */
export const aloneMsMax = 10_000

/** In a third of the worlds. Half of these campaigns cannot be folded alone either, and half are deleted. */
export function drawHeavyCampaign(random: Random, fromMs: number, untilMs: number) {
  if (!chance(random, 0.33)) return undefined
  const heavyFromMs = intBetween(random, fromMs, (fromMs + untilMs) / 2)
  return {
    id: `c${intBetween(random, 0, 2)}`,
    /** From here on, ms from the start of the world. Before, it is like any other. */
    fromMs: heavyFromMs,
    /** How long its fold alone takes. If it takes longer than `aloneMsMax`, it never succeeds. */
    aloneMs: chance(random, 0.5) ? Number.POSITIVE_INFINITY : intBetween(random, 100, aloneMsMax),
    /** What the common fold exceeds. */
    reason: pick(random, ['TIMEOUT_EXCEEDED', 'MEMORY_LIMIT_EXCEEDED'] as const),
    /** It changes then. */
    changesAt: intBetween(random, heavyFromMs, untilMs),
    /** Whether it is deleted then. */
    isLeaving: chance(random, 0.5),
  }
}

/** Whether a campaign is never folded again from some time on. Then it need not show its last state, but it must be able to leave. */
export function isNeverFolded(heavy: HeavyCampaign | undefined): boolean {
  return heavy !== undefined && heavy.aloneMs > aloneMsMax
}
