import { afterEach, expect, test } from 'vitest'
import { startTestPortal, type TestPortal } from '../../support/portal/app.ts'

let portal: TestPortal

afterEach(() => portal.close())

test('every answer has the security headers, errors too', async () => {
  portal = await startTestPortal()
  const browser = portal.browser()
  for (const path of ['/static/portal.css', '/static/nothing', '/nothing', '/%E0%A4%A']) {
    const { status, headers } = await browser.get(path)
    expect({ path, status, policy: headers.get('content-security-policy') }).toEqual({
      path,
      status: expect.any(Number),
      policy: expect.stringContaining("default-src 'none'; style-src 'self'; script-src 'self'"),
    })
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
  }
})

test('a form without the token of its browser is refused', async () => {
  portal = await startTestPortal()
  const browser = portal.browser()
  const { status, text } = await browser.post('/sign-out', { _csrf: 'made-up' })
  expect(status).toBe(403)
  expect(text).toContain('out of date')
})

test('an unknown page is a page', async () => {
  portal = await startTestPortal()
  const { status, headers, text } = await portal.browser().get('/<script>alert(1)</script>')
  expect(status).toBe(404)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(text).not.toContain('<script>alert')
  expect(text).toContain('<h1>Not found</h1>')
})

test('a page has one style sheet, whole from the start: half of it would ask for what the policy refuses', async () => {
  portal = await startTestPortal()
  const browser = portal.browser()
  const { text } = await browser.get('/')
  expect([...text.matchAll(/<link rel="stylesheet" href="([^"]+)">/g)].map(([, href]) => href)).toEqual([
    '/static/portal.css',
  ])
  const style = await browser.get('/static/portal.css')
  expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8')
  // Pico's rules come first, so that the portal's own win.
  expect(style.text.indexOf('Pico CSS')).toBeGreaterThan(-1)
  expect(style.text.indexOf('Pico CSS')).toBeLessThan(style.text.indexOf('--pico-icon-valid: none'))
  const again = await fetch(`${portal.url}/static/portal.css`, {
    headers: { 'if-none-match': style.headers.get('etag') ?? '' },
  })
  expect([again.status, await again.text()]).toEqual([304, ''])
})
