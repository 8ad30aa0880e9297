/**
 * API keys for owners and operators: issue, list and revoke, all through `api-keys` events.
 *
 * A key is issued only when the fold says that it is active. If several keys are issued at once, the fold activates
 * the three oldest of an account, and the others are deleted again here. The secret is not stored anywhere else.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeState, type StateEncoder } from '../../../contracts/events/codec.ts'
import type { ApiKeyState } from '../../../contracts/events/event.ts'
import type { EventWriter } from '../event-log/port.ts'
import type { Databases, Statement, Tables } from '../tables/port.ts'
import {
  generateApiKey,
  generateSecret,
  hashSecret,
  keyPrefix,
  keyPrefixLength,
  type RandomBytes,
} from './credentials.ts'

/** One key, from the key ledger and the fold. `version` is text, because it may be any 64-bit integer. */
export interface KeyRecord {
  key: string
  version: string
  account_id: string
  name: string
  url: string
  contact_email: string
  secret_hash: string
  scopes: string[]
  issued_at_ms: number
  /** `waiting`: not revoked, but the account has three older keys. */
  status: 'active' | 'waiting' | 'revoked'
}

/** The place to look up keys: the tables, or a running service that has them open. */
export interface KeyDirectory {
  ofAccount(account: string): Promise<KeyRecord[]>
  /** By the whole key, or by its first 16 characters. */
  find(key: string): Promise<KeyRecord[]>
}

/** The keys in the tables. */
export function keyDirectory(tables: Pick<Tables, 'rows'>, databases: Databases): KeyDirectory {
  return {
    ofAccount: account => tables.rows(accountKeysStatement(databases, account)),
    find: key => tables.rows(matchingKeysStatement(databases, key)),
  }
}

export interface KeyAdmin {
  directory: KeyDirectory
  writer: EventWriter
  /** Frames with the ids that the log's readers resolve. Default: the fixed ids. */
  encode?: StateEncoder
  pepper: string
  now: () => number
  monotonicMs: () => number
  randomBytes: RandomBytes
}

export interface NewKey {
  account: string
  name: string
  url: string
  email: string
  scopes?: string[]
}

/** A key could not be issued or revoked. The message says why. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** How many keys of an account are active: the oldest that are not revoked. The fold decides. */
export const activeKeysMax = 3

const visibleMsMax = 15_000
const withdrawnMsMax = 5_000
const lookMs = 50
const settleMs = 1_000

/**
 * Issues a key and returns it with its secret when it is active. Throws `KeyError` if it does not become active, or
 * the error of the directory. Then the key is deleted again, because its secret was never shown.
 */
export async function issueKey(admin: KeyAdmin, wanted: NewKey): Promise<{ key: string; secret: string }> {
  const active = await activeKeysOf(admin, wanted.account)
  if (active.length >= activeKeysMax) throw new KeyError(hasEnough(wanted.account, active))
  const key = generateApiKey(admin.randomBytes)
  const secret = generateSecret(admin.randomBytes)
  const issuedAt = admin.now()
  const state: ApiKeyState = {
    key,
    account_id: wanted.account,
    integration: { name: wanted.name, url: wanted.url, contact_email: wanted.email },
    secret_hash: hashSecret(admin.pepper, secret),
    scopes: wanted.scopes ?? ['read:public'],
    status: 'ACTIVE',
    version: 1,
    changed_at: issuedAt,
    issued_at: issuedAt,
  }
  await append(admin, state)
  try {
    const record = await settled(admin, key)
    if (record?.status === 'active') return { key, secret }
    throw new KeyError(await whyNotActive(admin, wanted.account, record))
  } catch (error) {
    await withdraw(admin, key)
    throw error
  }
}

/** Deletes a key that was never shown, and waits a while until no list has it. */
async function withdraw({ writer, directory, monotonicMs }: KeyAdmin, key: string): Promise<void> {
  await writer.append([{ topic: 'api-keys', key: Buffer.from(key), value: null }])
  const deadline = monotonicMs() + withdrawnMsMax
  // The tombstone is in the log, so the key ends even if it cannot be looked up now.
  const isListed = async () => (await directory.find(key).catch(() => [])).length > 0
  while ((await isListed()) && monotonicMs() < deadline) await sleep(lookMs)
}

async function activeKeysOf({ directory }: KeyAdmin, account: string): Promise<KeyRecord[]> {
  return (await directory.ofAccount(account)).filter(({ status }) => status === 'active')
}

function hasEnough(account: string, active: readonly KeyRecord[]): string {
  const prefixes = active.map(({ key }) => keyPrefix(key)).join(', ')
  return `account ${account} has its three active keys already (${prefixes}); revoke one first`
}

/** The key as the fold has it, after every key that was issued before it is folded. */
async function settled(admin: KeyAdmin, key: string): Promise<KeyRecord | undefined> {
  const record = await seen(admin, key, () => true)
  if (record?.status !== 'active') return record
  // A key that was issued a moment earlier may be folded a moment later. Then this key may no longer be among the
  // three.
  await sleep(settleMs)
  return (await admin.directory.find(key))[0]
}

async function whyNotActive(
  admin: KeyAdmin,
  account: string,
  record: KeyRecord | undefined,
): Promise<string> {
  if (!record) return `the key was not folded within ${visibleMsMax / 1000} s, so it was deleted again`
  return hasEnough(account, await activeKeysOf(admin, account))
}

/** Revokes by whole key or prefix, and resolves when the ledger has it: then the API refuses it. Throws `KeyError` if none or several match. */
export async function revokeKey(admin: KeyAdmin, keyOrPrefix: string): Promise<KeyRecord> {
  const [record, second] = await admin.directory.find(keyOrPrefix)
  if (!record) throw new KeyError(`there is no key ${keyOrPrefix}`)
  if (second) throw new KeyError(`several keys begin with ${keyOrPrefix}: give the whole key`)
  if (record.status === 'revoked') throw new KeyError(`key ${keyPrefix(record.key)} is revoked already`)
  await append(admin, {
    key: record.key,
    account_id: record.account_id,
    integration: { name: record.name, url: record.url, contact_email: record.contact_email },
    secret_hash: record.secret_hash,
    scopes: record.scopes,
    status: 'REVOKED',
    version: BigInt(record.version) + 1n,
    changed_at: admin.now(),
    issued_at: record.issued_at_ms,
  })
  const revoked = await seen(admin, record.key, found => found.status === 'revoked')
  if (!revoked)
    throw new KeyError(
      `the revocation is in the log, but no projector has read it within ${visibleMsMax / 1000} s`,
    )
  return revoked
}

/** The keys of an account, oldest first. It contains contact addresses: only for operators. */
export function accountKeysStatement(databases: Databases, account: string): Statement {
  return keysStatement(databases, 'ledger.account_id = {value:String}', account)
}

/** The key of that name. For a text of 16 characters: the keys that begin with it. */
export function matchingKeysStatement(databases: Databases, keyOrPrefix: string): Statement {
  const isPrefix = keyOrPrefix.length === keyPrefixLength
  const condition = isPrefix
    ? 'startsWith(ledger.api_key, {value:String})'
    : 'ledger.api_key = {value:String}'
  return keysStatement(databases, condition, keyOrPrefix)
}

function keysStatement(databases: Databases, condition: string, value: string): Statement {
  return {
    // A key that the fold has not seen is not listed, hence the inner join.
    query: `SELECT ledger.api_key AS key, toString(ledger.version) AS version, ledger.account_id AS account_id,
              ledger.integration_name AS name, ledger.integration_url AS url,
              ledger.integration_contact_email AS contact_email, ledger.secret_hash AS secret_hash,
              ledger.scopes AS scopes, toUnixTimestamp64Milli(ledger.issued_at) AS issued_at_ms,
              multiIf(NOT ledger.is_unrevoked, 'revoked', folded.is_active, 'active', 'waiting') AS status
            FROM (SELECT * FROM ${databases.model}.api_key_ledger FINAL) AS ledger
            INNER JOIN (SELECT * FROM ${databases.model}.api_keys FINAL) AS folded ON folded.api_key = ledger.api_key
            WHERE ${condition} AND ledger.account_id != ''
            ORDER BY ledger.issued_at, ledger.api_key LIMIT 1000`,
    query_params: { value },
  }
}

async function append({ writer, encode = encodeState }: KeyAdmin, state: ApiKeyState): Promise<void> {
  const value = encode({ type: 'api-key', data: state })
  await writer.append([{ topic: 'api-keys', key: Buffer.from(state.key), value }])
}

/** The key when the fold has it and the condition holds; `undefined` if that takes too long. */
async function seen(
  admin: KeyAdmin,
  key: string,
  condition: (record: KeyRecord) => boolean,
): Promise<KeyRecord | undefined> {
  const deadline = admin.monotonicMs() + visibleMsMax
  while (admin.monotonicMs() < deadline) {
    const [record] = await admin.directory.find(key)
    if (record && condition(record)) return record
    await sleep(lookMs)
  }
  return undefined
}
