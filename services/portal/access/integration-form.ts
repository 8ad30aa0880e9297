/** What a person typed into the form of an integration, and what is wrong with it. Pure. */
import { checkIntegration, type FieldFaults, type IntegrationFields } from '../accounts/integration.ts'

/** The labels of the fields. A fault follows its label. */
export const fieldLabels: Readonly<Record<keyof IntegrationFields, string>> = {
  name: 'Name',
  url: 'Web address',
  contact_email: 'Contact e-mail address',
}

/** The fields as they are kept; or as they were typed, with what is wrong with them. */
export function readIntegrationForm(body: unknown): { fields: IntegrationFields; faults: FieldFaults } {
  const typed: IntegrationFields = {
    name: textField(body, 'name'),
    url: textField(body, 'url'),
    contact_email: textField(body, 'contact_email'),
  }
  const checked = checkIntegration(typed)
  return 'faults' in checked
    ? { fields: typed, faults: checked.faults }
    : { fields: checked.fields, faults: {} }
}

/** A field of a form. A field that is missing or given twice is empty. */
export function textField(body: unknown, name: string): string {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, name)) return ''
  const value: unknown = Reflect.get(body, name)
  return typeof value === 'string' ? value : ''
}
