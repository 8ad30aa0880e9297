import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  requestsOf,
  totalOf,
  usagePicture,
  usageTable,
  usageText,
} from '../../../../services/portal/usage/usage-view.ts'
import { anyDays, sampleUsage } from '../keys/samples.ts'

const part = /<rect class="([a-z-]+)" x="([\d.]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"\/>/g

describe('the usage of a key', () => {
  it('is drawn with every outcome that occurred, inside the picture, and without an inline style', () => {
    fc.assert(
      fc.property(anyDays, days => {
        const { text } = usagePicture(days)
        const parts = [...text.matchAll(part)]
        const outcomes = days.flatMap(({ ok, not_modified, unauthorized, too_many, other }) =>
          [ok, not_modified, other, unauthorized, too_many].filter(value => value > 0),
        )
        expect(parts).toHaveLength(outcomes.length)
        for (const [, , , y, , height] of parts) {
          expect(Number(y)).toBeGreaterThanOrEqual(0)
          expect(Number(height)).toBeGreaterThan(1)
          expect(Number(y) + Number(height)).toBeLessThanOrEqual(260)
        }
        expect(text).not.toMatch(/style=/)
      }),
    )
  })

  it('is said in words', () => {
    const { days } = sampleUsage({ ok: 1_200, not_modified: 1, too_many: 3, other: 2 })
    const text =
      '1,206 requests in the last 30 days: 1,200 answers 200, 1 answer 304, 3 answers 429, 2 answers with another status.'
    expect(usageText(days)).toBe(text)
    expect(usagePicture(days).text).toContain(`<desc id="usage-desc">${text}</desc>`)
    expect(usagePicture(days).text).toContain(
      '<title>22 Nov 2026: 1,206 requests (200: 1200, 304: 1, 429: 3, Other: 2)</title>',
    )
    expect(usageText(sampleUsage().days)).toBe('0 requests in the last 30 days.')
  })

  it('is a table with a row for every day with requests, and the sum of all', () => {
    fc.assert(
      fc.property(anyDays, days => {
        const { text } = usageTable(days)
        const rows = days.filter(day => requestsOf(day) > 0).length + 1
        expect(text.match(/<th scope="row">/g)).toHaveLength(rows)
        const all = requestsOf(totalOf(days)).toLocaleString('en')
        expect(text).toContain(`<th scope="row">30\u00a0days</th><td class="number">${all}</td>`)
      }),
    )
  })
})
