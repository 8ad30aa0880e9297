/** The form of a key: whom it is for. A new key is created with it, and a key that works is changed. */
import { activeKeysMax } from '../../api-keys/api-keys.ts'
import { emailLengthMax } from '../account/email.ts'
import { type Field, form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { textOf } from '../http/forms.ts'
import {
  checkKeyFields,
  type FieldFaults,
  type KeyFields,
  lifetimes,
  nameLengthMax,
  urlLengthMax,
} from './key-fields.ts'
import { wayBack } from './key-pages.ts'

export interface KeyFormData {
  /** The page of the key. Without it: a new one. */
  path?: string
  fields: KeyFields
  faults?: FieldFaults
  /** For a new one: the name of the lifetime that was chosen, and whether the account has as many keys as it may have. */
  expires?: string | undefined
  isFull?: boolean
}

const formFields: readonly (Field & { name: keyof KeyFields })[] = [
  {
    name: 'name',
    label: 'Name',
    type: 'text',
    lengthMax: nameLengthMax,
    autocomplete: 'off',
    hint: 'The program or website that calls the API.',
  },
  {
    name: 'url',
    label: 'Web address',
    type: 'url',
    lengthMax: urlLengthMax,
    autocomplete: 'url',
    hint: 'Where people find it, for example https://example.com.',
  },
  {
    name: 'contact_email',
    label: 'Contact e-mail address',
    type: 'email',
    lengthMax: emailLengthMax,
    autocomplete: 'email',
    hint: 'Used only to reach you about this integration: before a breaking change, or if its traffic runs away. It is not published.',
  },
]

/** Faults stand at their fields and in a list above them. `token`: what lets the form of a new key act once. */
export function keyForm({ path, fields, faults = {}, expires, isFull }: KeyFormData, token?: string): Html {
  const isNew = path === undefined
  const faulty = formFields.filter(({ name }) => faults[name])
  return html`${wayBack}
<h1>${isNew ? 'Create a key' : 'Edit the key'}</h1>
${isNew && html`<p>A key is for one integration: a program or website of yours that calls the API.</p>`}
${isFull && notice(`You have ${activeKeysMax} active keys, the most that an account can have. Revoke one of them first.`, 'warning')}
${
  faulty.length > 0 &&
  notice(
    html`<p><strong>Nothing was saved.</strong></p>
<ul>${faulty.map(({ name, label }) => html`<li><a href="#${name}">${label}</a> ${faults[name]}.</li>`)}</ul>`,
    'bad',
  )
}
${form({
  action: isNew ? '/access/keys' : `${path}/edit`,
  hidden: { token },
  fields: formFields.map(field => ({
    ...field,
    value: fields[field.name],
    fault: faults[field.name] && `${field.label} ${faults[field.name]}.`,
  })),
  content: isNew ? lifetimeChoice(expires) : undefined,
  submit: isNew ? 'Create the key' : 'Save',
  cancel: { href: path ?? '/access', text: 'Cancel' },
  isCheckedHere: true,
  isSentOnce: isNew,
})}`
}

function lifetimeChoice(chosen: string | undefined): Html {
  const options = Object.keys(lifetimes).map(
    name =>
      html`<option value="${name}"${name === chosen && html` selected`}>after ${name.replace('-', ' ')}</option>`,
  )
  return html`<label for="expires">Ends</label>
<select id="expires" name="expires" aria-describedby="expires-hint"><option value="">never, until you revoke it</option>${options}</select>
<small class="hint" id="expires-hint">If you need the key for a while only, it can end by itself. Make a new one before that if you still need it.</small>`
}

/** What a person typed, checked. */
export function readKeyForm(body: unknown): ReturnType<typeof checkKeyFields> {
  return checkKeyFields({
    name: textOf(body, 'name'),
    url: textOf(body, 'url'),
    contact_email: textOf(body, 'contact_email'),
  })
}
