/** The page of versions and changes. Pure. */
import type { ApiVersion } from '../../../contracts/api/versions.ts'
import { type Html, html, prose } from '../html/html.ts'
import { badge, type Cell, stack } from '../html/parts.ts'

export function changesContent(data: {
  versions: readonly ApiVersion[]
  releases: readonly Release[]
}): Html {
  return html`<h1>Versions and changes</h1>
<p class="lead">What works today keeps working. New fields may come at any time; anything that could break a program comes under a new version.</p>
<h2>Versions of the API</h2>
${stack(['Version', 'State', 'Ends'], data.versions.map(versionRow))}
<p>Before a version ends, we write to the contact address of each active key. From then on its answers carry three headers: <code>Deprecation</code> with the day since when it is deprecated, <code>Sunset</code> with the day on which it ends, and <code>Link</code> with the address of this page. Under <a href="/access">API access</a> you see which of your keys still call it.</p>
<h2>Changes</h2>
${data.releases.map(releaseSection)}`
}

function versionRow({ basePath, deprecation }: ApiVersion): Cell[] {
  const state =
    deprecation === null
      ? badge('Current', 'good')
      : badge(`Deprecated since ${dayOf(deprecation.since)}`, 'warning')
  const successor = deprecation?.successor
  const end = html`${endOf(deprecation)}${successor && html`; use <code>${successor}</code>`}`
  return [html`<code>${basePath}</code>`, state, end]
}

function endOf(deprecation: ApiVersion['deprecation']): string {
  if (deprecation === null) return 'no end is planned'
  return deprecation.sunset === null ? 'the day is not decided yet' : dayOf(deprecation.sunset)
}

function releaseSection({ version, day, groups }: Release): Html {
  return html`<section class="card">
<h3>${version === 'Unreleased' ? 'Since the last release' : version}${day && html` <span class="muted">${day}</span>`}</h3>
${groups.toSorted((one, other) => rankOf(one.title) - rankOf(other.title)).map(({ title, entries }) => html`<details${rankOf(title) < 3 && html` open`}><summary><strong>${title}</strong>: ${advice[title] ?? 'see below'} (${entries.length})</summary><ul>${entries.map(entry => html`<li>${prose(entry)}</li>`)}</ul></details>`)}
</section>`
}

/** What each kind of change means for a program. What may need work comes first, and is open. */
const advice: Readonly<Record<string, string>> = {
  Removed: 'change your program',
  Deprecated: 'change your program in time',
  Changed: 'look whether your program relies on it',
  Added: 'nothing to do, if you do not need it',
  Fixed: 'nothing to do',
  Security: 'nothing to do',
}

function rankOf(title: string): number {
  const rank = Object.keys(advice).indexOf(title)
  return Math.max(rank, 0)
}

/** The UTC day of a moment in ISO 8601. */
function dayOf(moment: string): string {
  return new Date(moment).toISOString().slice(0, 10)
}

/** Reads CHANGELOG.md: what it says to API consumers. Pure. */

export interface Release {
  /** `Unreleased`, or a version. */
  version: string
  day: string | undefined
  groups: readonly { title: string; entries: readonly string[] }[]
}

/** The releases of a changelog in the form of Keep a Changelog, with only the entries for API consumers. */
export function consumerReleases(changelog: string): Release[] {
  const releases = partsOf(changelog, '## ').map(({ head, body }) => {
    const [, version = '', day] = /^\[([^\]]+)\](?: - (\S+))?$/.exec(head) ?? []
    const groups = partsOf(body, '### ').map(group => ({
      title: group.head,
      entries: consumerEntries(group.body),
    }))
    return { version, day, groups: groups.filter(({ entries }) => entries.length > 0) }
  })
  return releases.filter(({ version, groups }) => version !== '' && groups.length > 0)
}

/** The parts of a text that begin with a line of this mark. */
function partsOf(text: string, mark: string): { head: string; body: string }[] {
  const parts = `\n${text}`.split(`\n${mark}`).slice(1)
  return parts.map(part => {
    const [head = '', ...lines] = part.split('\n')
    return { head, body: lines.join('\n') }
  })
}

/** Entries may go on over several lines, indented. Each begins with whom it concerns. */
function consumerEntries(body: string): string[] {
  return partsOf(body, '- ').flatMap(({ head, body }) => {
    const entry = `${head} ${body}`.replace(/\s+/g, ' ').trim()
    const [, audiences = '', text = ''] = /^\*\*([^*]+)\*\*: (.*)/.exec(entry) ?? []
    if (!/\b(API consumers|Everybody)\b/.test(audiences)) return []
    const shown = text.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    return shown.slice(0, 1).toUpperCase() + shown.slice(1)
  })
}
