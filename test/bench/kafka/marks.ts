/**
 * Computes which of many pledges a reader can see, from nothing but the sums that it reads.
 *
 * A campaign's n-th pledge of the load has an amount of 2^n smallest units of money. So a campaign's sum is a set of bits, one
 * per pledge, in any order of arrival. Pure.
 */

/** The most pledges per campaign: a sum must fit into a 32-bit integer. */
export const marksPerCampaign = 30

export interface Mark {
  /** Number of the campaign. */
  campaign: number
  /** In the smallest unit of the currency. */
  amountMinor: number
}

export interface Sightings {
  /** Records what the sums (in the smallest unit) show at this time. Throws if a sum contains other amounts. */
  note(campaign: number, sumMinor: number, atMs: number): void
  /** How many pledges have been seen. */
  readonly seen: number
  /** When each pledge was first seen, ms; NaN if it was not. */
  readonly seenAtMs: Float64Array
}

/** The mark of this pledge, if the load cycles through this many campaigns. Throws a `RangeError` if there is no room. */
export function markOf(number: number, campaigns: number): Mark {
  const bit = Math.floor(number / campaigns)
  if (bit >= marksPerCampaign)
    throw new RangeError(`${campaigns} campaigns have no room for pledge ${number}`)
  return { campaign: number % campaigns, amountMinor: 2 ** bit }
}

export function createSightings(pledges: number, campaigns: number): Sightings {
  const seenAtMs = new Float64Array(pledges).fill(Number.NaN)
  const known = new Int32Array(campaigns)
  let seen = 0

  return {
    get seen() {
      return seen
    },
    seenAtMs,
    note(campaign, sumMinor, atMs) {
      const before = known[campaign]
      if (before === undefined) throw new RangeError(`there is no campaign ${campaign}`)
      if (!Number.isInteger(sumMinor) || sumMinor < 0 || sumMinor >= 2 ** marksPerCampaign) {
        throw new RangeError(`${sumMinor} is no sum of marks`)
      }
      for (let added = sumMinor & ~before; added !== 0; added &= added - 1) {
        const bit = 31 - Math.clz32(added & -added)
        const number = bit * campaigns + campaign
        if (number >= pledges) throw new RangeError(`pledge ${number} was never made`)
        seenAtMs[number] = atMs
        seen++
      }
      known[campaign] = before | sumMinor
    },
  }
}
