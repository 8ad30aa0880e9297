/**
 * The texts of the mails. Names are what a person typed, and a key's contact may be another person's address. So they
 * become one line without control characters, and nothing in them can be clicked. Pure.
 */
import { nameLengthMax } from '../keys/key-fields.ts'

export interface MailText {
  subject: string
  text: string
}

/** What a person typed, for the text of a mail: one line, printable, and no link. */
export function plainName(typed: string): string {
  const line = typed
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\s]+/gu, ' ')
    // Mail programs make links of addresses like evil.example or a@b.example.
    .replaceAll(/([.:/@\\。．｡])(?=[^\s])/gu, '$1 ')
    .trim()
  return [...line].slice(0, nameLengthMax).join('')
}

export function keyCreatedText(name: string, keyPrefix: string, portalUrl: string): MailText {
  return {
    subject: 'A new API key was created',
    text: `The API key ${keyPrefix}... was created for "${plainName(name)}".

If it was you, or a person of your team, do nothing.
If not, sign in and revoke it: ${portalUrl}/access
${footer}`,
  }
}

export function keyRevokedText(name: string, keyPrefix: string, portalUrl: string): MailText {
  return {
    subject: 'An API key was revoked',
    text: `The API key ${keyPrefix}... of "${plainName(name)}" was revoked. The API refuses it.

If a program still uses it, give the program a new key: ${portalUrl}/access
${footer}`,
  }
}

export function runawayText(
  { name, requests, refused }: { name: string; requests: number; refused: number },
  keyPrefix: string,
  portalUrl: string,
): MailText {
  return {
    subject: 'Your program exceeds the request limit',
    text: `The program "${plainName(name)}" with the API key ${keyPrefix}... sent ${requests} requests within 15 minutes.
${refused} of them were refused with status 429, because they were over the limit.

A program that gets 429 should wait until the time in the header X-RateLimit-Reset. Keep answers, and send If-None-Match.
How to read the API within its limits: ${portalUrl}/docs
The requests of the key: ${portalUrl}/access

You get this mail at most once a day for each key.
${footer}`,
  }
}

const footer = `
You get this mail because your address is that of the account, or the contact of one of its keys, on Pledgeview.
It is used for nothing else.
`
