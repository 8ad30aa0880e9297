/** The frame of every page: head, navigation, content, footer. */
import { type Html, html } from './html.ts'

export interface PageOptions {
  title: string
  /** One sentence for search engines and link previews. */
  description?: string
  /** Path of the page, to mark its entry of the navigation. */
  path: string
  /** The e-mail address of the person who is signed in. */
  signedInAs?: string | undefined
  content: Html
  /** Scripts of `/static` that this page needs, beside portal.js. */
  scripts?: readonly string[]
}

const navigation = [
  { path: '/docs', title: 'Guide' },
  { path: '/reference', title: 'Reference' },
  { path: '/changes', title: 'Versions' },
  { path: '/data', title: 'Data teams' },
] as const

/** The whole page as text. */
export function page(options: PageOptions): string {
  const { title, description, path, content, scripts = [] } = options
  // Twice in the page, and shown once: side by side, or on a phone in a menu that needs no script.
  const entries = html`<ul>${navigation.map(entry => navigationEntry(entry, path))}</ul>
${accountEntries(options)}`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${description && html`<meta name="description" content="${description}">`}
<title>${title}${path === '/' ? '' : ' · Pledgeview'}</title>
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/portal.css">
<script src="/static/portal.js" defer></script>
${scripts.map(script => html`<script src="/static/${script}" defer></script>`)}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<nav aria-label="Main">
<a class="brand" href="/"><img src="/static/icon.svg" alt="" width="24" height="24">Pledgeview</a>
<div class="wide">${entries}</div>
<details class="menu"><summary>Menu</summary>${entries}</details>
</nav>
</header>
<main id="content">
${content}
</main>
<footer>
<p class="muted">Public campaign data, read-only. <a href="/docs">Guide</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/changes">Versions</a> · <a href="/status">Status</a></p>
</footer>
</body>
</html>
`.text
}

function navigationEntry({ path, title }: { path: string; title: string }, current: string): Html {
  return html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${title}</a></li>`
}

function accountEntries({ signedInAs, path }: PageOptions): Html {
  if (signedInAs === undefined)
    return html`<ul class="account">${navigationEntry({ path: '/sign-in', title: 'Sign in' }, path)}</ul>`
  return html`<ul class="account">
${navigationEntry({ path: '/access', title: 'API access' }, path)}
${navigationEntry({ path: '/account', title: 'Account' }, path)}
<li><form method="post" action="/sign-out"><button type="submit" class="link">Sign out</button></form></li>
</ul>`
}
