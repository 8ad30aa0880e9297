/** What a person may type of the integration that a key is for, and the messages for what does not fit. Pure. */
import { dayMs } from '../../runtime/runtime.ts'
import { checkEmail } from '../account/email.ts'

/** Name, web address and contact of the program that calls the API with the key. */
export interface KeyFields {
  name: string
  url: string
  contact_email: string
}

/** A message for each field that does not fit. It follows the field's label: `Name` + `is missing`. */
export type FieldFaults = Partial<KeyFields>

/** For how long a key can be made, ms. */
export const lifetimes = { '30-days': 30 * dayMs, '90-days': 90 * dayMs, '365-days': 365 * dayMs } as const

/** The name of the time for which this key was made; undefined: until it is revoked. */
export function lifetimeOf(key: { issued_at_ms: number; expires_at_ms: number | null }): string | undefined {
  return Object.entries(lifetimes).find(([, ms]) => key.issued_at_ms + ms === key.expires_at_ms)?.[0]
}

export const nameLengthMax = 80
export const urlLengthMax = 2_048

/** The fields as they are kept, or as they were typed, with what is wrong with them. */
export function checkKeyFields(typed: KeyFields): { fields: KeyFields; faults?: FieldFaults } {
  const fields = { ...typed, name: typed.name.normalize('NFC').trim(), url: typed.url.trim() }
  const faults: FieldFaults = {}
  const nameFault = nameFaultOf(fields.name)
  if (nameFault) faults.name = nameFault
  const urlFault = urlFaultOf(fields.url)
  if (urlFault) faults.url = urlFault
  else fields.url = new URL(fields.url).href
  const contact = checkEmail(typed.contact_email)
  if ('reason' in contact) faults.contact_email = contact.reason
  else fields.contact_email = contact.email
  return Object.keys(faults).length > 0 ? { fields: typed, faults } : { fields }
}

function nameFaultOf(name: string): string | undefined {
  if (!name.isWellFormed()) return 'has characters that are not text'
  if (name === '') return 'is missing'
  if ([...name].length > nameLengthMax) return `is longer than ${nameLengthMax} characters`
  // Also marks that change the direction of the text: with them a name can look like another one.
  if (/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(name))
    return 'has line breaks or other control characters'
  return undefined
}

function urlFaultOf(text: string): string | undefined {
  if (text === '') return 'is missing'
  if (text.length > urlLengthMax) return `is longer than ${urlLengthMax} characters`
  const url = URL.parse(text)
  if (!url) return 'is not a web address, like https://example.com'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'does not begin with https:// or http://'
  if (url.username !== '' || url.password !== '') return 'has a user name or a password in it'
  return url.href.length > urlLengthMax ? `is longer than ${urlLengthMax} characters` : undefined
}
