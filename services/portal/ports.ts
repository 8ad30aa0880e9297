/**
 * What the portal's pages need of the rest: accounts, keys and mail. Tests of pages have them in memory. `service.ts` makes the real
 * ones. Times are Unix milliseconds.
 */
import type { KeyRecord } from '../api-keys/api-keys.ts'

/** A person's account. It is known by a keyed hash of the e-mail address, so two sign-ups at once meet. */
export interface Account {
  account_id: string
  email: string
  created_at: number
  /** Sessions that began earlier have ended ("sign out everywhere"). */
  sessions_valid_from: number
}

/** A program of an account that calls the API. Its keys carry its name, URL and contact address. */
export interface Integration {
  integration_id: string
  account_id: string
  name: string
  url: string
  contact_email: string
  created_at: number
}

/** Accounts and integrations. What a call has written, every later call sees, in every portal. */
export interface Accounts {
  /** The account with this id, as the ledger has it now. */
  find(accountId: string): Promise<Account | undefined>
  /** The account of a verified e-mail address. Creates it if there is none. */
  ofVerifiedEmail(email: string): Promise<Account>
  /** Ends every session that began before now. */
  endSessions(accountId: string): Promise<void>
  integrations(accountId: string): Promise<Integration[]>
  /** Adds or replaces an integration. At most `integrationsMax` for an account; throws `AccountError` beyond it. */
  saveIntegration(integration: Integration): Promise<void>
  removeIntegration(accountId: string, integrationId: string): Promise<void>
  /** Deletes the account with its integrations: from now on it does not exist. Its keys have to be deleted after it. */
  delete(accountId: string): Promise<void>
  /** The accounts of which keys or integrations are left after a deletion, or whose deletion has to be appended again. */
  unfinished(): Promise<string[]>
  /** Removes the integrations that are left, and appends deletions again if their time has come. */
  finishDeletion(accountId: string): Promise<void>
}

/** When the old key of a replacement ends. */
export type Overlap = 'at-once' | 'one-hour' | 'one-day'

/** The API keys of accounts. */
export interface PortalKeys {
  /** The keys of an account, oldest first. It includes the revoked and the ended ones. */
  ofAccount(accountId: string): Promise<PortalKey[]>
  /** Resolves when the key is active. Throws `KeyError` with a reason for people, for example that three are active. */
  issue(integration: Integration): Promise<{ key: string; secret: string }>
  /** By the first 16 characters or the whole key; does nothing if it is revoked. Throws `KeyError` if the account has no such key. */
  revoke(accountId: string, key: string): Promise<PortalKey>
  replace(
    accountId: string,
    key: string,
    overlap: Overlap,
    integration: Integration,
    /** The old key was revoked at once. Called also if no new one can be made after all. */
    onRevoked?: () => void,
  ): Promise<{ key: string; secret: string }>
  /**
   * Deletes every key of the account, also the revoked ones, with the addresses that they carry. With an integration: only its keys.
   * For what is deleted.
   */
  deleteAll(accountId: string, integrationId?: string): Promise<void>
}

/** A key of an account. Its `integration_id` is empty if `keys issue` made it. */
export type PortalKey = KeyRecord

/** A mail as text. `id` makes the Message-ID, so that a mail that is sent twice is recognised. */
export interface Mail {
  id: string
  to: string
  subject: string
  text: string
}

export interface Mailer {
  /** Resolves when the server (or the outbox) has the mail. Throws if it does not. Never logs the text. */
  send(mail: Mail): Promise<void>
  close(): Promise<void>
}

/**
 * Mails about a key that was created or revoked, to the account and to the contact of the integration. Resolves when the mails
 * are noted; they are sent elsewhere, and retried.
 */
export interface KeyNotices {
  created(account: Account, integration: KeyOwner, keyPrefix: string): Promise<void>
  revoked(account: Account, integration: KeyOwner, keyPrefix: string): Promise<void>
}

/** An integration, or a key that carries its name and contact. */
export type KeyOwner = Pick<Integration, 'name' | 'contact_email'>

/** A mail was not sent. The message can be logged: it has no address and no text of the mail. */
export class MailError extends Error {
  override name = 'MailError'
  /** The server takes no mail for this address. It makes no sense to try again. */
  readonly isRefusedAddress: boolean
  /** The server may have taken the mail: it did not answer. */
  readonly isInDoubt: boolean
  constructor(message: string, { isRefusedAddress = false, isInDoubt = false } = {}) {
    super(message)
    this.isRefusedAddress = isRefusedAddress
    this.isInDoubt = isInDoubt
  }
}
