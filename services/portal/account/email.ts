/** E-mail addresses: their check, their normal form, and the account id that is made of it. Pure. */
import { createHmac } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'

export const emailLengthMax = 254
const localLengthMax = 64
// RFC 5321 without quoted parts: these can hold spaces, line ends and commas, and nobody uses them.
const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
// What can stand in a domain before its conversion, which cuts `x.com/y` and `x.com?y` to `x.com` and decodes `%`.
const typedDomain = /^[A-Za-z0-9.\u0080-\u{10ffff}-]+$/u
const domainPart = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/

/** The normal form of an address, or the reason why the text is none, worded to follow a field's name. */
export type CheckedEmail = { email: string } | { reason: string }

/**
 * The normal form: without space around it, in lower case, an international domain in its ASCII form. So one person who
 * writes the address differently has one account. What comes after a `+` stays: it may be another person's.
 */
export function checkEmail(text: string): CheckedEmail {
  const trimmed = text.trim()
  if (trimmed === '') return { reason: 'is missing' }
  if (trimmed.length > emailLengthMax) return { reason: `is longer than ${emailLengthMax} characters` }
  const at = trimmed.lastIndexOf('@')
  if (at < 1 || at === trimmed.length - 1)
    return { reason: 'is not an e-mail address, like name@example.com' }
  const local = trimmed.slice(0, at)
  const typed = trimmed.slice(at + 1)
  const domain = typedDomain.test(typed) ? domainToASCII(typed).toLowerCase() : ''
  if (!localPart.test(local) || local.length > localLengthMax) {
    return { reason: 'has a part before the @ that cannot be used here' }
  }
  // A number like `1` or `0x7f.1` was converted to the IP address that it stands for.
  if (!domainPart.test(domain) || isIPv4(domain)) return { reason: 'has no domain name after the @' }
  const email = `${local}@${domain}`.toLowerCase()
  return email.length > emailLengthMax ? { reason: `is longer than ${emailLengthMax} characters` } : { email }
}

/**
 * The id of the account of an address in its normal form. It is a keyed hash: every portal makes the same one, and nobody without
 * the key can try addresses against it.
 */
export function accountIdOf(portalKey: string, email: string): string {
  const hash = createHmac('sha256', portalKey).update(`account ${email}`).digest('hex')
  return `acct_${hash.slice(0, idDigits)}`
}

// 128 bits: enough that no two addresses meet.
const idDigits = 32
