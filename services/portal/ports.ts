/** What the portal's pages know of accounts, keys and mails. Times are Unix milliseconds. */
import type { KeyRecord } from '../api-keys/api-keys.ts'

/** A person's account. It is known by a keyed hash of the e-mail address, so two sign-ups at once meet. */
export interface Account {
  account_id: string
  email: string
  created_at: number
  /** Sessions that began earlier have ended ("sign out everywhere"). */
  sessions_valid_from: number
}

export type PortalKey = KeyRecord

/** A mail as text. `id` makes the Message-ID, so that a mail that is sent twice is recognised. */
export interface Mail {
  id: string
  to: string
  subject: string
  text: string
}

export interface Mailer {
  /** Resolves when the server has the mail. Throws if it does not. Never logs the text. */
  send(mail: Mail): Promise<void>
  /** A sentence that says where mails are, if there is no mail server. */
  mailsAre?: string
  close(): Promise<void>
}

/** A mail was not sent. The message can be logged: it has no address and no text of the mail. */
export class MailError extends Error {
  override name = 'MailError'
  /** The server takes no mail for this address. It makes no sense to try again. */
  readonly isRefusedAddress: boolean
  constructor(message: string, { isRefusedAddress = false } = {}) {
    super(message)
    this.isRefusedAddress = isRefusedAddress
  }
}
