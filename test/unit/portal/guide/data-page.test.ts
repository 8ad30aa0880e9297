/** The page for data teams, as a function from data to HTML. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { connectSection, dictionarySection } from '../../../../services/portal/guide/data-connect.ts'
import { playLink, readExamples } from '../../../../services/portal/guide/data-examples.ts'
import { dataContent, examplesSection } from '../../../../services/portal/guide/data-page.ts'
import type { DataPictures } from '../../../../services/portal/guide/readings.ts'
import { timeBars } from '../../../../services/portal/html/bars.ts'
import { readPublicViews } from '../../../../services/tables/schema/public-views.ts'

const examples = readExamples('crowdfunding')
const none = new Map()
const campaign = { url: 'https://x.example/a', category: 'Art', status: 'LIVE', raised: 1_000, backers: 9 }
const pictures: DataPictures = {
  about: {
    currency: 'USD',
    campaigns: 12_345,
    as_of: Date.parse('2026-11-22T10:00:00Z'),
    history_from: '2026-11-01',
    history_kept_from: '2026-11-08',
  },
  funding: [
    { day: '2026-11-20', raised: 1_234, pledges: 3 },
    { day: '2026-11-21', raised: -50, pledges: -1 },
  ],
  categories: [
    { category: 'Art', ended: 8, funded: 6 },
    { category: 'Games', ended: 3, funded: 1 },
  ],
  campaigns: [{ ...campaign, title: 'A Lamp' }],
}
const pageOf = (changes: Partial<DataPictures> = {}): string =>
  dataContent({ ...pictures, ...changes }, []).text

describe('the pictures', () => {
  test('have all of their figures as tables, and a description of what is drawn', () => {
    const text = pageOf()
    expect(text).toContain('aria-labelledby="picture-funding-title" aria-describedby="picture-funding-desc"')
    expect(text).toMatch(/<desc id="picture-funding-desc">.+<\/desc>/)
    for (const cell of ['Raised, USD', '1,234', '-50', '20 Nov 2026', '75', '33.3', '1,000', 'LIVE'])
      expect(text).toMatch(new RegExp(`<t[hd][^>]*>${cell}</t[hd]>`))
  })

  test('whatever people typed, it is text, and no bar leaves its picture', () => {
    // Money and shares have at most three decimals.
    const value = fc.integer({ min: -1e12, max: 1e12 }).map(thousandths => thousandths / 1_000)
    fc.assert(
      fc.property(fc.array(fc.record({ label: fc.string(), value }), { maxLength: 40 }), given => {
        const bars = given.map(({ label, value }) => ({
          ...{ label: `<i x="'>${label}`, title: label, parts: [{ kind: 'ok', value }] },
        }))
        const { text } = timeBars({ id: 'p', title: '<b>', description: '"</desc><script>' }, bars, String)
        expect(text).not.toMatch(/<(?!\/?(svg|title|desc|g|rect|text|line)\b)|NaN|Infinity|style=/)
        const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(text) ?? []
        for (const [, x, y, w, h] of text.matchAll(
          /<rect class="\S+" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"/g,
        )) {
          expect(Math.min(Number(x), Number(y), Number(w), Number(h))).toBeGreaterThanOrEqual(0)
          expect(Number(x) + Number(w)).toBeLessThanOrEqual(Number(width) + 0.1)
          expect(Number(y) + Number(h)).toBeLessThanOrEqual(Number(height) + 0.1)
        }
      }),
    )
  })

  test('only a web address becomes a link', () => {
    const hostile = pageOf({ campaigns: [{ ...campaign, title: '<script>', url: 'javascript:alert(1)' }] })
    expect(hostile).not.toContain('javascript:')
    expect(hostile).not.toContain('<script>')
    expect(pageOf()).toContain('<a href="https://x.example/a" rel="nofollow noopener noreferrer">')
  })

  test('a part that cannot be read is said to be missing, and the rest is there', () => {
    const text = pageOf({ about: undefined, funding: undefined })
    expect(text).toContain('cannot be read at the moment')
    expect(text.match(/cannot be drawn at the moment/g)).toHaveLength(1)
    expect(text).toContain('A Lamp')
    const none = pageOf({ funding: [], categories: [], campaigns: [] })
    expect(none).not.toMatch(/<svg|<meter/)
  })
})

describe('the examples', () => {
  test('begin with their question, and name the database of the service', () => {
    for (const { name, sql } of readExamples('open_data')) {
      expect(name).toMatch(/^\d\d-[a-z0-9-]+$/)
      expect(sql).toContain('FROM open_data.')
      expect(sql).not.toContain('crowdfunding.')
    }
  })

  test('are whole on the page, each with a link that carries it to the play page, if that can be reached', () => {
    const section = examplesSection(examples, 'https://sql.example/?user=reader', none).text
    const links = [...section.matchAll(/href="(https:[^"]+)"/g)].map(
      ([, href = '']) => new URL(plainText(href)),
    )
    expect(links).toHaveLength(examples.length)
    for (const [index, link] of links.entries()) {
      expect(`${link.origin}${link.pathname}${link.search}`).toBe('https://sql.example/play?user=reader')
      expect(Buffer.from(link.hash.slice(1), 'base64').toString()).toBe(examples[index]?.sql)
    }
    expect(section).not.toContain('through SSH')
    expect(examplesSection(examples, undefined, none).text).not.toContain('/play')
    expect(examplesSection(examples, 'http://127.0.0.1:8123/?user=analyst', none).text).toContain(
      'through SSH',
    )
    expect(playLink('http://[::1]:8123', 'é')).toBe('http://[::1]:8123/play#w6k=')
  })

  test('have the beginning of their answer below them, as text; a missing one is said to be missing', () => {
    const name = examples[0]?.name ?? ''
    const row = { title: '<script>', 'raised<b>': 1_234.5, median: null }
    const rows = Array.from({ length: 11 }, () => row)
    const text = examplesSection(examples, undefined, new Map([[name, rows]])).text
    expect(text).not.toMatch(/<script|raised<b/)
    expect(text.match(/ class="number">1,234\.5<\/td>/g)).toHaveLength(10)
    expect(text).toContain('There are more rows')
    expect(text.match(/cannot be shown at the moment/g)).toHaveLength(examples.length - 1)
    const empty = new Map(examples.map(({ name }) => [name, []]))
    expect(examplesSection(examples, undefined, empty).text).toContain('The answer has no rows')
  })
})

describe('the settings', () => {
  test('name the address, the user and the database of the service, or leave them to be filled in', () => {
    const text = plainText(connectSection('http://127.0.0.1:8124/?user=ana', 'open_data').text)
    for (const part of ['host="127.0.0.1", port=8124, secure=False, username="ana", database="open_data"'])
      expect(text).toContain(part)
    expect(text).toContain('jdbc:clickhouse://127.0.0.1:8124/open_data?user=ana')
    expect(text).toContain("curl -sf 'http://127.0.0.1:8124/?user=ana'")
    expect(plainText(connectSection('https://sql.example', 'crowdfunding').text)).toContain(
      'port=443, secure=True',
    )
    expect(connectSection(undefined, 'crowdfunding').text).toContain('YOUR_USER')
  })

  test('every view and column of the contract is listed with its comment', () => {
    const text = plainText(dictionarySection(readPublicViews()).text)
    for (const { name, columns } of readPublicViews()) {
      expect(text).toContain(`<details id="view-${name}">`)
      for (const column of columns) expect(text).toContain(column.comment)
    }
  })
})

/** Escaped text as it was. */
function plainText(text: string): string {
  return text.replace(/&#(\d+);/g, (_all, code) => String.fromCharCode(Number(code)))
}
