import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  smallUsageGraph,
  usageGraph,
  usageScale,
  usageText,
} from '../../../../services/portal/usage/usage-graph.ts'
import { requestsOf, totalOf, usageTable } from '../../../../services/portal/usage/usage-table.ts'
import { anyDays, sampleUsage } from '../keys/samples.ts'

const segment = /<rect class="([a-z-]+)" x="([\d.]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"\/>/g

describe('the graph of usage', () => {
  it('shows every outcome that occurred, and stays inside its picture', () => {
    fc.assert(
      fc.property(anyDays, days => {
        for (const [graph, height] of [
          [usageGraph(days), 150],
          [smallUsageGraph(days), 30],
        ] as const) {
          const segments = [...graph.text.matchAll(segment)]
          const outcomes = days.flatMap(({ ok, not_modified, unauthorized, too_many, other }) =>
            [ok, not_modified, other, unauthorized, too_many].filter(value => value > 0),
          )
          expect(segments).toHaveLength(outcomes.length)
          for (const [, , , y, , segmentHeight] of segments) {
            expect(Number(y)).toBeGreaterThanOrEqual(0)
            expect(Number(segmentHeight)).toBeGreaterThan(1)
            expect(Number(y) + Number(segmentHeight)).toBeLessThanOrEqual(height + 0.02)
          }
        }
      }),
    )
  })

  it('has no inline style, which the policy of the page would drop', () => {
    fc.assert(fc.property(anyDays, days => !/style/i.test(usageGraph(days).text)))
  })

  it('says in words what it shows', () => {
    const { days } = sampleUsage({ ok: 1_200, not_modified: 1, too_many: 3, other: 2 })
    const text =
      '1,206 requests in the last 30 days: 1,200 answers 200, 1 answer 304, 3 answers 429, 2 answers with another status.'
    expect(usageText(days)).toBe(text)
    expect(usageGraph(days).text).toContain(`role="img" aria-label="${text}"`)
    expect(usageGraph(days).text).toContain(
      '<title>22 Nov 2026: 1,206 requests (200: 1200, 304: 1, 429: 3, Other: 2)</title>',
    )
  })

  it('says in words what its axes are', () => {
    expect(usageScale(sampleUsage({ ok: 1_200 }).days)).toBe(
      'From 24 Oct 2026 to 22 Nov 2026. The highest bar is 1,200 requests on one day.',
    )
  })

  it('says that there were none', () => {
    expect(usageText(sampleUsage().days)).toBe('0 requests in the last 30 days.')
  })
})

describe('the table of usage', () => {
  it('has a row for every day with requests, and the sum of all', () => {
    fc.assert(
      fc.property(anyDays, days => {
        const { text } = usageTable(days)
        expect(text.match(/<th scope="row">/g)).toHaveLength(
          days.filter(day => requestsOf(day) > 0).length + 1,
        )
        const all = requestsOf(totalOf(days)).toLocaleString('en')
        expect(text).toContain(`<th scope="row">30\u00a0days</th><td class="number">${all}</td>`)
      }),
    )
  })
})
