/** Short texts of contracts as HTML: words in backticks become code. Everything is escaped. */
import { type Html, html } from './html.ts'

/** `text` with `code` in backticks. */
export function prose(text: string | undefined): Html {
  const parts = (text ?? '').split('`')
  // An odd number of backticks is text like any other.
  if (parts.length % 2 === 0) return html`${text}`
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
