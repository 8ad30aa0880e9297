/** The page /access/requests: what the keys of an account asked for: by hour or day, by endpoint, and the latest ones with their ids. */
import { keyPrefix } from '../../api-keys/credentials.ts'
import { type Html, html } from '../html/html.ts'
import { badge, notice, stack } from '../html/parts.ts'
import { moment } from '../html/words.ts'
import type { PortalKey } from '../ports.ts'
import { type EndpointCount, type KeyRequest, type KeyUsage, latestMax, type Per } from './usage-reader.ts'
import { requestsOf, usagePicture, usageTable, usageText } from './usage-view.ts'

export interface RequestsPageData {
  /** All keys of the account. */
  keys: readonly PortalKey[]
  /** What the form asks for. An empty key: all of them. */
  asked: { key: string; per: Per; id: string }
  /** Undefined: they cannot be read. */
  read:
    | { days: KeyUsage['days']; latest: readonly KeyRequest[]; endpoints: readonly EndpointCount[] }
    | undefined
}

export function requestsContent({ keys, asked, read }: RequestsPageData): Html {
  if (keys.length === 0)
    return html`<h1>Requests</h1>
<p>There is no key yet. <a href="/access/keys/new">Create a key</a></p>`
  return html`<h1>Requests</h1>
${filterForm(keys, asked)}
${
  read === undefined
    ? notice('The requests cannot be read at the moment. The keys themselves are not affected.', 'warning')
    : html`<p>${usageText(read.days)} Counts are complete up to about a minute ago.</p>
${read.days.some(day => requestsOf(day) > 0) && html`${usagePicture(read.days)}<details><summary>The counts as a table</summary>${usageTable(read.days)}</details>`}
${byEndpoint(read.endpoints)}
${latest(read.latest, keys, asked.id)}`
}`
}

function filterForm(keys: readonly PortalKey[], asked: RequestsPageData['asked']): Html {
  const option = (value: string, chosen: string, text: Html | string) =>
    html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`
  return html`<form action="/access/requests" class="cards">
<div><label for="key">Key</label><select id="key" name="key">${option('', asked.key, 'All keys')}${keys.map(({ key, name }) => option(keyPrefix(key), asked.key, html`${name} (${keyPrefix(key)}…)`))}</select></div>
<div><label for="per">Time</label><select id="per" name="per">${option('day', asked.per, 'By day, 30 days')}${option('hour', asked.per, 'By hour, 72 hours')}</select></div>
<div><label for="id">X-Request-Id</label><input id="id" name="id" type="text" value="${asked.id}" maxlength="64" autocomplete="off" spellcheck="false" placeholder="or its beginning"></div>
<div class="actions"><button type="submit">Show</button></div>
</form>`
}

function byEndpoint(endpoints: readonly EndpointCount[]): Html {
  return html`<h2>By endpoint</h2>
<p>The last three days, without requests beyond the limit of a key.</p>
${
  endpoints.length > 0 &&
  stack(
    ['Endpoint', 'Status', 'Requests', '95 % within, ms'],
    endpoints.map(row => [pathText(row.endpoint), statusBadge(row.status), row.requests, row.p95_ms]),
  )
}`
}

function latest(rows: readonly KeyRequest[], keys: readonly PortalKey[], id: string): Html {
  const nameOf = new Map(keys.map(({ key, name }) => [key, name]))
  const found = id === '' ? 'The latest requests' : html`Requests whose id begins with <code>${id}</code>`
  return html`<h2>${found}</h2>
<p>At most ${latestMax}, of the last three days. Addresses, secrets, slugs and categories are not kept.</p>
${
  rows.length === 0
    ? html`<p>None.</p>`
    : stack(
        ['Time', 'Request', 'Status', 'ms', 'Key', 'X-Request-Id'],
        rows.map(({ answered_at, path, status, ms, api_key, request_id }) => [
          moment(answered_at),
          pathText(path),
          statusBadge(status),
          ms,
          html`<bdi>${nameOf.get(api_key)}</bdi>`,
          html`<code>${request_id}</code>`,
        ]),
      )
}`
}

// The pattern of a route is written as in the reference.
function pathText(path: string): Html {
  return html`<code>${path.replace(/:(\w+)/g, '{$1}')}</code>`
}

function statusBadge(status: number): Html {
  return badge(String(status), status < 400 ? 'good' : status < 500 ? 'warning' : 'bad')
}
