/** The answer to the form that made a key: the only page that ever shows a secret. It must not be stored anywhere. */
import { type Html, html } from '../html/html.ts'
import { codeBlock, copyable, notice } from '../html/parts.ts'

export interface SecretPageData {
  key: string
  secret: string
  /** The name of the integration. */
  name: string
  apiUrl: string
  /** What became of the key that this one replaces. */
  replaced?: string | undefined
}

export function secretPage(data: SecretPageData): Html {
  const { key, secret, name, apiUrl, replaced } = data
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
<h2>Try it</h2>
<p>This line works at once. Your shell may keep it in its history: take key and secret from a secret store in programs.</p>
${codeBlock({ id: 'curl', caption: 'curl', text: curlLine(apiUrl, key, secret) })}
<p><a href="/docs">How to call the API</a></p>`
}

/** One line for sh, PowerShell and cmd: neither key nor secret has a character that a shell reads. */
export function curlLine(apiUrl: string, key: string, secret: string): string {
  return `curl -H "X-API-Key: ${key}" -H "X-API-Secret: ${secret}" "${apiUrl}/projects?limit=1"`
}
