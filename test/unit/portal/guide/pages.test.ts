/** What the public pages promise, as functions from data to HTML. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { versions } from '../../../../contracts/api/versions.ts'
import { changesContent, consumerReleases } from '../../../../services/portal/guide/changes.ts'
import { guideContent } from '../../../../services/portal/guide/guide.ts'
import { landingContent } from '../../../../services/portal/guide/landing.ts'
import { type Document, operationsOf } from '../../../../services/portal/guide/openapi.ts'
import { referenceContent } from '../../../../services/portal/guide/reference.ts'
import { readConfig } from '../../../../services/runtime/config.ts'

const apiUrl = 'https://data.example/api/v1'
const config = readConfig({})
const read = (name: string) => readFileSync(new URL(`../../../../${name}`, import.meta.url), 'utf8')
const document = JSON.parse(read('contracts/api/openapi.json')) as Document

test('the reference has every parameter and every field of the OpenAPI document', () => {
  const text = referenceContent({ document, apiUrl }).text
  const operations = operationsOf(document)
  expect(operations.map(({ path }) => path)).toEqual(Object.keys(document.paths))
  const names = [
    ...operations.flatMap(({ parameters }) => parameters.map(({ name }) => name)),
    ...Object.values(document.components.schemas).flatMap(schema => Object.keys(schema.properties ?? {})),
  ]
  expect(names.length).toBeGreaterThan(60)
  expect(names.filter(name => !text.includes(`<code>${name}</code>`))).toEqual([])
})

test('the reference saves a file with curl, and offers no button that would read it into the page', () => {
  const { text } = referenceContent({ document, apiUrl })
  const files = operationsOf(document).filter(({ isFile }) => isFile)
  expect(files.map(({ path }) => path)).toEqual([
    '/exports/latest/campaigns.ndjson.gz',
    '/exports/latest/campaigns.parquet',
  ])
  for (const { id } of operationsOf(document)) {
    const isFile = files.some(file => file.id === id)
    expect(text.includes(`data-id="${id}"`)).toBe(!isFile)
    expect(new RegExp(`id="${id}-curl">curl (\\S+)`).exec(text)?.[1]).toBe(isFile ? '-sSfO' : '-sS')
  }
})

test('no page has an id twice, and every link within a page and between pages leads somewhere', () => {
  const live = { status: 'Up to date', campaigns: 1, as_of: 0 } as const
  const pages = {
    '/docs': guideContent({ apiUrl, hasPackage: true, document, config }).text,
    '/reference': referenceContent({ document, apiUrl }).text,
    '/': landingContent({ live, apiUrl, isSignedIn: false, config }).text,
  }
  for (const text of Object.values(pages)) {
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    const targets = text.matchAll(/(?:href|data-copy|aria-describedby|aria-labelledby|for)="#?([^"/?]+)"/g)
    expect([...targets].map(([, id]) => id).filter(id => !ids.includes(id))).toEqual([])
    for (const [, path, id] of text.matchAll(/href="(\/docs|\/reference)#([^"]+)"/g))
      expect(pages[path as keyof typeof pages]).toContain(` id="${id}"`)
  }
})

test('the limits that the pages name are those of the installation', () => {
  const own = readConfig({
    PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '600',
    PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: '7',
    PLEDGEVIEW_CACHE_MS: '90000',
    PLEDGEVIEW_STATS_CACHE_MS: '210000',
  })
  const live = { status: 'Up to date', campaigns: 1, as_of: 0 } as const
  const guide = guideContent({ apiUrl, hasPackage: true, document, config: own }).text
  const first = landingContent({ live, apiUrl, isSignedIn: false, config: own }).text
  for (const limit of ['600 requests', ', 7 a minute', '60,000 campaigns', '90 seconds', '210 seconds'])
    expect(guide).toContain(limit)
  for (const limit of ['600 requests', '90 seconds', '210 seconds']) expect(first).toContain(limit)
})

test('key and secret have no name, so no form can put them into an address', () => {
  const { text } = referenceContent({ document, apiUrl })
  for (const id of ['try-key', 'try-secret']) {
    const [input] = text.match(new RegExp(`<input id="${id}"[^>]*>`)) ?? []
    expect(input).toContain('autocomplete="off"')
    expect(input).not.toMatch(/ (name|value)=/)
  }
})

test('the first page names what is unknown, and does not invent it', () => {
  const live = { status: 'Unavailable', campaigns: undefined, as_of: undefined } as const
  const { text } = landingContent({ live, apiUrl, isSignedIn: false, config })
  expect(text).toContain('Unavailable')
  expect(text.match(/<dd>unknown<\/dd>/g)).toHaveLength(2)
})

test('the changelog page has what concerns API consumers, and nothing else', () => {
  const releases = consumerReleases(
    `# Changelog\n\n## [Unreleased]\n\n### Added\n\n- **Operators**: a switch.\n- **API consumers, data teams**: a field\n  of two lines, see [there](x.md).\n\n## [0.1.0] - 2026-11-21\n\n### Fixed\n\n- **Everybody**: a fault.\n`,
  )
  expect(releases).toEqual([
    {
      version: 'Unreleased',
      day: undefined,
      groups: [{ title: 'Added', entries: ['A field of two lines, see there.'] }],
    },
    { version: '0.1.0', day: '2026-11-21', groups: [{ title: 'Fixed', entries: ['A fault.'] }] },
  ])
  const { text } = changesContent({ versions, releases: consumerReleases(read('CHANGELOG.md')) })
  expect(text).toContain('updated_since')
  expect(text).not.toContain('events append')
})

test('every entry of the changelog says in the form that the page reads whom it concerns', () => {
  const name = '(API consumers|Data teams|Everybody|Operators|Platform engineers|Producers)'
  const form = new RegExp(`^- \\*\\*${name}(, ${name})*\\*\\*: `, 'i')
  const entries = read('CHANGELOG.md').match(/^- .*/gm) ?? []
  expect(entries.length).toBeGreaterThan(200)
  expect(entries.filter(entry => !form.test(entry))).toEqual([])
})

test('the page of versions says since when one is deprecated, when it ends, and what to use instead', () => {
  const deprecation = { since: '2027-01-01T00:00:00Z', sunset: '2027-07-01T00:00:00Z', successor: '/api/v2' }
  const old = { name: 'v1', basePath: '/api/v1', deprecation }
  const { text } = changesContent({ versions: [old], releases: [] })
  expect(text).toContain('Deprecated since 2027-01-01')
  expect(text).toContain('2027-07-01; use <code>/api/v2</code>')
  const open = changesContent({ versions, releases: [] }).text
  expect(open).toContain('Current')
  expect(open).toContain('no end is planned')
})
