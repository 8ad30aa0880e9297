/** The pages that add, edit and remove an integration. */
import { keyPrefix } from '../../api-keys/credentials.ts'
import {
  checkIntegration,
  type FieldFaults,
  type IntegrationFields,
  nameLengthMax,
  urlLengthMax,
} from '../account/integration.ts'
import { type Field, form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { textOf } from '../http/forms.ts'
import type { Integration } from '../ports.ts'
import { wayBack } from './key-pages.ts'
import type { KeyView } from './key-state.ts'
import { lastUsed } from './overview-page.ts'

export interface IntegrationPageData {
  /** Undefined: a new one. */
  integrationId: string | undefined
  fields: IntegrationFields
  faults: FieldFaults
  csrf: Html
  formToken?: string | undefined
}

const formFields: readonly (Field & { name: keyof IntegrationFields })[] = [
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
    lengthMax: 254,
    autocomplete: 'email',
    hint: 'Used only to reach you about this integration: before a breaking change, or if its traffic runs away. It is not published.',
  },
]

/** The form of an integration. Faults stand at their fields and in a list above them. */
export function integrationPage(data: IntegrationPageData): Html {
  const { integrationId, fields, faults, csrf, formToken } = data
  const isNew = integrationId === undefined
  const action = isNew ? '/access/integrations' : `/access/integrations/${encodeURIComponent(integrationId)}`
  return html`${wayBack()}
<h1>${isNew ? 'Add an integration' : 'Edit the integration'}</h1>
${faultList(faults)}
${form({
  action,
  csrf,
  hidden: { token: formToken },
  fields: formFields.map(field => ({
    ...field,
    value: fields[field.name],
    fault: faults[field.name] && `${field.label} ${faults[field.name]}.`,
  })),
  submit: isNew ? 'Add the integration' : 'Save',
  cancel: { href: '/access', text: 'Cancel' },
  isCheckedHere: true,
})}`
}

function faultList(faults: FieldFaults): Html | undefined {
  const faulty = formFields.filter(({ name }) => faults[name] !== undefined)
  if (faulty.length === 0) return undefined
  return notice(
    html`<p><strong>It was not saved.</strong></p>
<ul>${faulty.map(({ name, label }) => html`<li><a href="#${name}">${label}</a> ${faults[name]}.</li>`)}</ul>`,
    'bad',
  )
}

/** Asks before an integration is removed, and names the keys that end with it. */
export function removePage(data: { integration: Integration; alive: readonly KeyView[]; csrf: Html }): Html {
  const { integration, alive, csrf } = data
  const path = `/access/integrations/${encodeURIComponent(integration.integration_id)}/remove`
  return html`${wayBack()}
<h1>Remove <bdi>${integration.name}</bdi>?</h1>
${
  alive.length === 0
    ? html`<p>It has no active key. This cannot be undone.</p>`
    : html`<p>Its keys are revoked first. The API refuses them within seconds. This cannot be undone.</p>
<ul>${alive.map(({ key, usage }) => html`<li><code>${keyPrefix(key.key)}…</code>, last used: ${lastUsed(usage)}</li>`)}</ul>`
}
${form({
  action: path,
  csrf,
  submit: alive.length === 0 ? 'Remove it' : 'Revoke its keys and remove it',
  isDanger: true,
  cancel: { href: '/access', text: 'Keep it' },
})}`
}

/** What a person typed: the fields as they are kept, or as they were typed, with what is wrong with them. */
export function readIntegrationForm(body: unknown): { fields: IntegrationFields; faults: FieldFaults } {
  const typed: IntegrationFields = {
    name: textOf(body, 'name'),
    url: textOf(body, 'url'),
    contact_email: textOf(body, 'contact_email'),
  }
  const checked = checkIntegration(typed)
  return 'faults' in checked
    ? { fields: typed, faults: checked.faults }
    : { fields: checked.fields, faults: {} }
}
