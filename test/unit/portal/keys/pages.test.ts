import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Html } from '../../../../services/portal/html/html.ts'
import { keyForm, readKeyForm } from '../../../../services/portal/keys/key-form.ts'
import { keyPage, overviewPage, revokePage, secretPage } from '../../../../services/portal/keys/key-pages.ts'
import { requestsContent } from '../../../../services/portal/usage/requests-page.ts'
import { hostileText, now, sampleKey, sampleUsage, sampleView } from './samples.ts'

const secretData = {
  key: sampleKey().key,
  secret: 'pv_secret_x',
  name: 'Backer Board',
  apiUrl: 'https://api.example/api/v1',
}

/** Every page, with this text wherever a person or an event can put one. */
function pagesWith(text: string): Html[] {
  const views = (['active', 'waiting', 'revoked'] as const).map(status =>
    sampleView({
      status,
      key: `${status}${text}`,
      name: text,
      url: text,
      contact_email: text,
    }),
  )
  const [view = sampleView()] = views
  const fields = { name: text, url: text, contact_email: text }
  const faults = { name: 'is missing', url: 'is missing', contact_email: 'is missing' }
  return [
    overviewPage({ keys: views }),
    keyForm({ path: `/access/keys/${encodeURIComponent(text)}`, fields, faults }),
    keyPage(view),
    revokePage(view),
    secretPage({ ...secretData, key: `k${text}`, name: text }),
    requestsContent({
      keys: views.map(({ key }) => key),
      asked: { key: text, per: 'hour', id: text },
      read: {
        days: [],
        latest: [{ api_key: '', answered_at: now, request_id: text, path: text, status: 404, ms: 1 }],
        endpoints: [{ endpoint: text, status: 200, requests: 1, p95_ms: 1 }],
      },
    }),
  ]
}

/** The tags of a page with their attributes' names: what a browser makes of it. */
function structureOf({ text }: Html): string[] {
  return [...text.matchAll(/<(\/?[a-z0-9]+)((?:\s+[a-z][a-z0-9-]*(?:="[^"]*")?)*)\s*\/?>/gi)].map(
    ([, tag, attributes = '']) => `${tag} ${attributes.replaceAll(/="[^"]*"/g, '')}`,
  )
}

describe('what a person typed', () => {
  it('never changes the structure of a page', () => {
    const plain = pagesWith('plain').map(structureOf)
    fc.assert(
      fc.property(fc.oneof(hostileText, fc.constant('javascript:alert(1)')), text => {
        for (const [index, page] of pagesWith(text).entries()) {
          expect(structureOf(page)).toEqual(plain[index])
          expect(page.text.match(/</g)?.length).toBe(structureOf(page).length)
          expect(page.text).not.toContain('href="javascript:')
        }
      }),
    )
  })
})

describe('every page', () => {
  it('never shows more of a key than its first 16 characters, except where the key is new', () => {
    const view = sampleView({}, sampleUsage({ ok: 3, deprecated: 1 }))
    const pages = [overviewPage({ keys: [view] }), keyPage(view), revokePage(view)]
    for (const { text } of pages) {
      expect(text).toContain('pv_live_abcdefgh')
      expect(text).not.toContain('pv_live_abcdefgh0')
    }
  })
})

describe('the overview', () => {
  it('never says that a key was never used', () => {
    const at = (last_used: number | undefined) =>
      overviewPage({
        keys: [sampleView({}, { ...sampleUsage(), last_used })],
      }).text
    expect(at(undefined)).toContain('>no counted use in the last 90 days<')
    expect(at(now)).toContain('22 Nov 2026, 14:05 UTC')
  })

  it('names the keys that still call a deprecated version, and nobody else', () => {
    const keys = [
      sampleView({}, sampleUsage({ ok: 12, deprecated: 12 })),
      sampleView({ key: 'pv_live_modern00' }, sampleUsage({ ok: 5 })),
    ]
    const { text } = overviewPage({ keys })
    const notice = /A deprecated version is still called[\s\S]*?<\/section>/.exec(text)?.[0] ?? ''
    expect(notice).toContain('pv_live_abcdefgh')
    expect(notice).toContain('12 requests in the last 30 days')
    expect(notice).not.toContain('pv_live_modern00')
    expect(overviewPage({ keys: keys.slice(1) }).text).not.toContain('deprecated')
  })
})

describe('the form of a key', () => {
  it('takes a field that was given twice as missing', () => {
    const { faults } = readKeyForm({
      name: ['a', 'b'],
      url: 'https://a.example',
      contact_email: 'a@b.example',
    })
    expect(faults).toEqual({ name: 'is missing' })
  })
})
