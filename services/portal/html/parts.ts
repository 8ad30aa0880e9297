/** Small parts of pages. `static/portal.css` describes how they look. */
import { type Html, html } from './html.ts'
import { count } from './words.ts'

export type Tone = 'good' | 'warning' | 'bad'

/** A message about what has happened or is the matter. Screen readers read a bad one at once. */
export function notice(content: Html | string, tone?: Tone): Html {
  const role = tone === 'bad' ? 'alert' : 'status'
  return html`<div class="notice${tone && ` ${tone}`}" role="${role}">${typeof content === 'string' ? html`<p>${content}</p>` : content}</div>`
}

/** A word on the state of something. The word says it; the colour only helps. */
export function badge(text: string, tone?: Tone): Html {
  return html`<span class="badge${tone && ` ${tone}`}">${text}</span>`
}

/** A value to be copied, with its button. `id` must be unique in the page. */
export function copyable({ id, text, what }: { id: string; text: string; what: string }): Html {
  return html`<div class="copyable"><code id="${id}">${text}</code>${copyButton(id, what)}</div>`
}

/** A block of code with its caption and a button that copies it. `id` must be unique in the page. */
export function codeBlock({ id, caption, text }: { id: string; caption: string; text: string }): Html {
  return html`<figure class="code"><figcaption>${caption}${copyButton(id, caption)}</figcaption><pre tabindex="0" role="group" aria-label="${caption}"><code id="${id}">${text}</code></pre></figure>`
}

/** The rest of a row after its name. A number stands to the right. */
export type Cell = Html | string | number

/** A table whose rows become small cards on a phone, so that nothing of it is cut. Each row begins with its name. */
export function stack(heads: readonly string[], rows: readonly (readonly Cell[])[], caption?: string): Html {
  const numbers = heads.map((_, index) => rows.some(row => typeof row[index] === 'number'))
  const kind = (index: number) => numbers[index] && html` class="number"`
  return html`<table class="stack">${caption && html`<caption>${caption}</caption>`}
<thead><tr>${heads.map((head, index) => html`<th scope="col"${kind(index)}>${head}</th>`)}</tr></thead>
<tbody>
${rows.map(
  ([
    name,
    ...cells
  ]) => html`<tr><th scope="row">${name}</th>${cells.map((cell, index) => html`<td data-label="${heads[index + 1]}"${kind(index + 1)}>${typeof cell === 'number' ? count(cell) : cell}</td>`)}</tr>
`,
)}</tbody>
</table>`
}

/** A link to an address that other people or programs wrote: only a web address becomes one. */
export function webLink(url: string, content: Html | string): Html {
  if (!/^https?:\/\//i.test(url)) return html`${content}`
  return html`<a href="${url}" rel="nofollow noopener noreferrer">${content}</a>`
}

function copyButton(id: string, what: string): Html {
  return html`<button type="button" class="small secondary" data-copy="#${id}">Copy<span class="visually-hidden"> ${what}</span></button>`
}
