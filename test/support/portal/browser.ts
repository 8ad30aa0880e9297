/** A browser without JavaScript for tests of the portal: it keeps cookies, does not follow redirects, and sends forms. */

export type Browser = ReturnType<typeof createBrowser>
export type Answer = Awaited<ReturnType<Browser['get']>>

/** A browser. Without `cookies` it has not been at this address yet. */
export function createBrowser(url: string, cookies = new Map<string, string>()) {
  async function send(path: string, init: RequestInit) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...(cookie && { cookie }), ...(init.headers as Record<string, string>) }
    const response = await fetch(new URL(path, url), { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      const name = pair.slice(0, pair.indexOf('='))
      const value = pair.slice(pair.indexOf('=') + 1)
      const isOver = attributes.some(attribute => /^max-age=0$|^expires=thu, 01 jan 1970/i.test(attribute))
      if (value === '' || isOver) cookies.delete(name)
      else cookies.set(name, value)
    }
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      location: response.headers.get('location') ?? undefined,
    }
  }

  return {
    cookies,
    get: (path: string, headers: Record<string, string> = {}) => send(path, { headers }),
    /** Sends a form, as a page of the portal does. */
    post: (path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}) =>
      send(path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url, ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
  }
}

/** Reads the page, and sends its form with this action, with the fields that it has and these. Throws if there is none. */
export async function submit(
  browser: Browser,
  page: string,
  action: RegExp,
  fields: Record<string, string> = {},
): Promise<Answer> {
  const { text } = await browser.get(page)
  const form = [...text.matchAll(/<form[^>]* action="([^"]*)"[^>]*>(.*?)<\/form>/gs)].find(([, found = '']) =>
    action.test(found),
  )
  if (!form?.[1] || form[2] === undefined) throw new Error(`${page} has no form ${action}:\n${text}`)
  const hidden = [...form[2].matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)]
  return browser.post(form[1], {
    ...Object.fromEntries(hidden.map(([, name, value]) => [name, value])),
    ...fields,
  })
}
