/**
 * What the portal's pages need of the rest: accounts, keys and mail. Tests of pages have them in memory. `service.ts` makes the real
 * ones. Times are Unix milliseconds.
 */
import type { KeyRecord } from '../api-keys/api-keys.ts'
import type { KeyFields } from './keys/key-fields.ts'

/** A person's account. It is known by a keyed hash of the e-mail address, so two sign-ups at once meet. */
export interface Account {
  account_id: string
  email: string
  created_at: number
  /** Sessions that began earlier have ended ("sign out everywhere"). */
  sessions_valid_from: number
}

/** The accounts. What a call has written, every later call sees, in every portal. */
export interface Accounts {
  /** The account with this id, as the ledger has it now. */
  find(accountId: string): Promise<Account | undefined>
  /** The account of a verified e-mail address. Creates it if there is none. */
  ofVerifiedEmail(email: string): Promise<Account>
  /** Ends every session that began before now. An account that does not exist any more has none. */
  endSessions(accountId: string): Promise<void>
  /** Deletes the account: from now on it does not exist. Its keys have to be deleted after it. */
  delete(accountId: string): Promise<void>
  /** The accounts of which something is left after a deletion, or whose deletion has to be appended again. */
  unfinished(): Promise<string[]>
  /** Appends deletions again if their time has come. */
  finishDeletion(accountId: string): Promise<void>
}

/** When the old key of a replacement ends. */
export type Overlap = 'at-once' | 'one-hour' | 'one-day'

/** The API keys of accounts. */
export interface PortalKeys {
  /** The keys of an account, oldest first. It includes the revoked and the ended ones. */
  ofAccount(accountId: string): Promise<PortalKey[]>
  /** Resolves when the key is active. Throws `KeyError` with a reason for people, for example that three are active. */
  issue(
    accountId: string,
    fields: KeyFields,
    /** How long the key works, ms. Default: until it is revoked. */
    livesMs?: number,
  ): Promise<{ key: string; secret: string }>
  /** Gives the key another name, web address or contact. Throws `KeyError` if it has ended. */
  change(accountId: string, key: string, fields: KeyFields): Promise<void>
  /** By the first 16 characters or the whole key; does nothing if it is revoked. Throws `KeyError` if the account has no such key. */
  revoke(accountId: string, key: string): Promise<PortalKey>
  /** A new key with the fields and the lifetime of the old one. The old one ends first, or gets its end. */
  replace(
    accountId: string,
    key: string,
    overlap: Overlap,
    /** The old key was revoked at once. Called also if no new one can be made after all. */
    onRevoked?: () => void,
  ): Promise<{ key: string; secret: string }>
  /** Deletes every key of the account, also the revoked ones, with the addresses that they carry. */
  deleteAll(accountId: string): Promise<void>
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

/**
 * Mails about a key that was created or revoked, to the account and to the contact of the key. Resolves when the mails
 * are noted; they are sent elsewhere, and retried.
 */
export interface KeyNotices {
  created(account: Account, owner: KeyOwner, keyPrefix: string): Promise<void>
  revoked(account: Account, owner: KeyOwner, keyPrefix: string): Promise<void>
}

/** Whom a key is for. */
export type KeyOwner = Pick<KeyFields, 'name' | 'contact_email'>

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
