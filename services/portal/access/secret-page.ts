/** The answer to the form that made a key: the only page that ever shows a secret. It must not be stored anywhere. */
import { type Html, html } from '../html/html.ts'
import { codeBlock, copyable, notice } from '../html/parts.ts'
import { keyPath } from './key-state.ts'

export interface SecretPageData {
  key: string
  secret: string
  /** The name of the integration. */
  name: string
  apiUrl: string
  /** What became of the key that this one replaces. */
  replaced?: string | undefined
  csrf: Html
}

export function secretPage(data: SecretPageData): Html {
  const { key, secret, name, apiUrl, replaced, csrf } = data
  return html`<h1>Your new key</h1>
<p class="lead">The key of <bdi>${name}</bdi> works now.${replaced && ` ${replaced}`}</p>
${notice(
  html`<p><strong>Save the secret now. This page shows it once.</strong> Pledgeview keeps only a hash of it. If you lose it, replace the key.</p>`,
  'warning',
)}
<h2>Key and secret</h2>
<p id="key-title">Key</p>
${copyable({ id: 'key', text: key, what: 'the key' })}
<p id="secret-title">Secret</p>
${copyable({ id: 'secret', text: secret, what: 'the secret' })}
<form method="post" action="${keyPath({ key })}/confirm" data-confirm>${csrf}
<div class="actions"><button type="submit">I have saved the secret</button></div>
<p class="muted" role="status" data-confirm-status>${replaced === undefined ? plainText : replacementText}</p>
</form>
<h2>Try it</h2>
<p>This line works at once. Your shell may keep it in its history: take key and secret from a secret store in programs.</p>
${codeBlock({ id: 'curl', caption: 'curl', text: curlLine(apiUrl, key, secret) })}
<p><a href="/docs">How to call the API</a></p>`
}

const plainText =
  'A key whose secret nobody has is of no use to you. So this key stays only if we know that this page was sent to you. Our server notes that by itself when it has sent the whole page; your browser and the button tell us that it has arrived. If none of these comes within a minute, the key ends by itself soon after. Then create another one.'
const replacementText =
  'This key replaces another one, so it stays only if this page has reached you. Your browser tells us by itself if it runs scripts. If it does not, press the button. If neither reaches us within a minute, the new key ends by itself soon after. Then create another one.'

/** One line for sh, PowerShell and cmd: neither key nor secret has a character that a shell reads. */
export function curlLine(apiUrl: string, key: string, secret: string): string {
  return `curl -H "X-API-Key: ${key}" -H "X-API-Secret: ${secret}" "${apiUrl}/projects?limit=1"`
}
