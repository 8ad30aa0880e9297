/**
 * HTML as tagged templates. Every value is escaped, unless it is HTML that a template made: those are marked by their type.
 *
 *     html`<p>${text}</p>`            escapes the text
 *     html`<ul>${items.map(row)}</ul>` takes the HTML of `row` as it is
 */
import { html as escaping } from 'ghtml'

/** HTML that may be put into a page as it is. Only `html` makes it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

type Part = string | number | Html | undefined | false | null | readonly Part[]

/** Makes HTML. `undefined`, `null` and `false` become nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = strings[0] ?? ''
  for (const [index, part] of parts.entries()) text += textOf(part) + (strings[index + 1] ?? '')
  return new Html(text)
}

function textOf(part: Part): string {
  if (part === undefined || part === null || part === false) return ''
  if (part instanceof Html) return part.text
  if (Array.isArray(part)) return part.map(textOf).join('')
  return escaping`${String(part)}`
}

/* Short texts of contracts as HTML: words in backticks become code. Everything is escaped. */

/** `text` with `code` in backticks. */
export function prose(text: string | undefined): Html {
  const parts = (text ?? '').split('`')
  // An odd number of backticks is text like any other.
  if (parts.length % 2 === 0) return html`${text}`
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
