import { describe, expect, test } from 'vitest'
import { createSightings, markOf, marksPerCampaign } from './marks.ts'

describe('marks', () => {
  test('each pledge is seen once, when its amount is first part of the sum, in any order of arrival', () => {
    const campaigns = 3
    const pledges = campaigns * marksPerCampaign
    const sightings = createSightings(pledges, campaigns)
    const sums = [0, 0, 0]
    // 37 and 90 have no common divisor, so this gives each number once, in another order.
    const order = Array.from({ length: pledges }, (_, index) => (index * 37) % pledges)
    for (const [time, number] of order.entries()) {
      const { campaign, amountMinor } = markOf(number, campaigns)
      sums[campaign] = (sums[campaign] ?? 0) + amountMinor
      sightings.note(campaign, sums[campaign], time)
      sightings.note(campaign, sums[campaign], time + 0.5)
    }
    expect(sightings.seen).toBe(pledges)
    for (const [time, number] of order.entries()) expect(sightings.seenAtMs[number]).toBe(time)
  })

  test('several pledges that become visible at once are all seen at that time', () => {
    const sightings = createSightings(6, 2)
    sightings.note(1, 0b101, 7)
    expect([...sightings.seenAtMs]).toEqual([Number.NaN, 7, Number.NaN, Number.NaN, Number.NaN, 7])
  })

  test('a sum that no pledges of the load can have is an error', () => {
    const sightings = createSightings(4, 2)
    expect(() => sightings.note(0, 0b100, 0)).toThrow('never made')
    expect(() => sightings.note(0, 0.5, 0)).toThrow('no sum')
    expect(() => sightings.note(2, 1, 0)).toThrow('no campaign')
    expect(() => markOf(2 * marksPerCampaign, 2)).toThrow('no room')
  })
})
