/** The forms of the portal that change something: one shape for all, so that no form lacks a label. Pure. */
import { type Html, html } from './html.ts'

export interface Field {
  /** Also the id of the field. */
  name: string
  label: string
  type: 'text' | 'url' | 'email'
  value?: string
  lengthMax: number
  autocomplete: 'off' | 'url' | 'email' | 'one-time-code'
  inputmode?: 'numeric'
  placeholder?: string
  hint?: string
  /** What is wrong with what was typed, as a sentence. */
  fault?: string | undefined
}

export interface Form {
  action: string
  /** Names and values that the person does not see. `undefined` is left out. */
  hidden?: Readonly<Record<string, string | undefined>>
  fields?: readonly Field[]
  /** What is no text field. */
  content?: Html | undefined
  /** What the button says. */
  submit: Html | string
  isDanger?: boolean
  /** The way out, to the page at `href`. */
  cancel?: { href: string; text: string }
  /** The server answers faults of all fields at once, instead of the browser one after the other. */
  isCheckedHere?: boolean
  /** A second sending would lose the answer to the first, or do it twice: portal.js sends it once. */
  isSentOnce?: boolean
}

export function form(data: Form): Html {
  const { action, hidden = {}, fields = [], content, submit, isDanger, cancel } = data
  const given = Object.entries(hidden).filter(([, value]) => value !== undefined)
  return html`<form method="post" action="${action}"${fields.length > 0 && html` class="stacked"`}${data.isCheckedHere && html` novalidate`}${data.isSentOnce && html` data-once`}>
${given.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map(fieldInput)}${content}
<div class="actions"><button type="submit"${isDanger && html` class="danger"`}>${submit}</button>${cancel && html` <a class="button secondary" href="${cancel.href}">${cancel.text}</a>`}</div>
</form>`
}

function fieldInput(field: Field): Html {
  const { name, value = '', inputmode, placeholder, hint, fault } = field
  const described = [fault && `${name}-fault`, hint && `${name}-hint`].filter(Boolean).join(' ')
  return html`<label for="${name}">${field.label}</label>
<input id="${name}" name="${name}" type="${field.type}" value="${value}" maxlength="${field.lengthMax}" required autocomplete="${field.autocomplete}"${inputmode && html` inputmode="${inputmode}"`}${placeholder && html` placeholder="${placeholder}"`}${described && html` aria-describedby="${described}"`}${fault && html` aria-invalid="true"`}>
${fault && html`<small class="fault" id="${name}-fault">${fault}</small>`}
${hint && html`<small class="hint" id="${name}-hint">${hint}</small>`}
`
}
