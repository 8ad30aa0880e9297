/** A campaign that the common fold cannot fold in time. */
import { chance, intBetween, type Random } from '../../../services/demo/random.ts'

export interface HeavyCampaign {
  id: string
  /** From here on, ms from the start of the world. Before, it is like any other. */
  fromMs: number
  /** How long its fold alone takes. If it takes longer than `aloneMsMax`, it never succeeds. */
  aloneMs: number
}

/** How long a fold of a campaign that is set aside may take. */
export const aloneMsMax = 30_000

/** In a third of the worlds. Half of these campaigns cannot be folded alone either. */
export function drawHeavyCampaign(
  random: Random,
  fromMs: number,
  untilMs: number,
): HeavyCampaign | undefined {
  if (!chance(random, 0.33)) return undefined
  return {
    id: `c${intBetween(random, 0, 5)}`,
    fromMs: intBetween(random, fromMs, untilMs),
    aloneMs: chance(random, 0.5) ? Number.POSITIVE_INFINITY : intBetween(random, 100, aloneMsMax),
  }
}

/** The campaign that is never folded again from some time on. No promise is made about it. */
export function lostCampaign(heavy: HeavyCampaign | undefined): string | undefined {
  return heavy && heavy.aloneMs > aloneMsMax ? heavy.id : undefined
}
