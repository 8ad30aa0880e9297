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
export type FieldFaults = Partial<Record<keyof KeyFields, string>>

/** For how long a key can be made, ms. */
export const lifetimes = { '30-days': 30 * dayMs, '90-days': 90 * dayMs, '365-days': 365 * dayMs } as const

/** The name of the time for which this key was made; empty: until it is revoked. */
export function lifetimeOf(key: { issued_at_ms: number; expires_at_ms: number | null }): string {
  const found = Object.entries(lifetimes).find(([, ms]) => key.issued_at_ms + ms === key.expires_at_ms)
  return found?.[0] ?? ''
}

export const nameLengthMax = 80
export const urlLengthMax = 2_048

/** The fields as they are kept, or what is wrong with them. */
export function checkKeyFields(typed: KeyFields): { fields: KeyFields } | { faults: FieldFaults } {
  const name = checkName(typed.name)
  const url = checkUrl(typed.url)
  const contact = checkEmail(typed.contact_email)
  const faults: FieldFaults = {
    ...('reason' in name && { name: name.reason }),
    ...('reason' in url && { url: url.reason }),
    ...('reason' in contact && { contact_email: contact.reason }),
  }
  if ('reason' in name || 'reason' in url || 'reason' in contact) return { faults }
  return { fields: { name: name.name, url: url.url, contact_email: contact.email } }
}

function checkName(text: string): { name: string } | { reason: string } {
  if (!text.isWellFormed()) return { reason: 'has characters that are not text' }
  const name = text.normalize('NFC').trim()
  if (name === '') return { reason: 'is missing' }
  if ([...name].length > nameLengthMax) return { reason: `is longer than ${nameLengthMax} characters` }
  // Also marks that change the direction of the text: with them a name can look like another one.
  if (/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(name)) {
    return { reason: 'has line breaks or other control characters' }
  }
  return { name }
}

function checkUrl(text: string): { url: string } | { reason: string } {
  const trimmed = text.trim()
  if (trimmed === '') return { reason: 'is missing' }
  if (trimmed.length > urlLengthMax) return { reason: `is longer than ${urlLengthMax} characters` }
  if (!URL.canParse(trimmed)) return { reason: 'is not a web address, like https://example.com' }
  const { protocol, username, password, href } = new URL(trimmed)
  if (protocol !== 'https:' && protocol !== 'http:')
    return { reason: 'does not begin with https:// or http://' }
  if (username !== '' || password !== '') return { reason: 'has a user name or a password in it' }
  return href.length > urlLengthMax ? { reason: `is longer than ${urlLengthMax} characters` } : { url: href }
}
