/**
 * API keys for owners and operators: issue, list and revoke, all through `api-keys` events.
 *
 * A key is issued only when the fold says that it is active. If several keys are issued at once, the fold activates
 * the three oldest of an account, and the others are deleted again here. The secret is not stored anywhere else.
 *
 * A key that was made for a time expires. The query service refuses it from that moment (0001-people.sql). The fold counts it among the
 * three until its end is in the log too, so `issueKey` writes that first.
 */
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import type { ApiKeyState } from '../../contracts/events/event.ts'
import { recordOf } from '../log/event-lines.ts'
import type { EventWriter } from '../log/port.ts'
import { sleep, untilFound } from '../runtime/async/sleep.ts'
import type { Databases, Tables } from '../tables/port.ts'
import {
  generateApiKey,
  generateSecret,
  hashSecret,
  keyPrefix,
  keyPrefixLength,
  type RandomBytes,
} from './credentials.ts'
import { revokedState } from './key-states.ts'

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
  /** The key ends at this moment (Unix ms). Null: it does not expire. */
  expires_at_ms: number | null
  /**
   * `waiting`: not revoked, but the account has three older keys. `ended`: it has expired, and the API refuses it; it
   * becomes `revoked` when its place is needed.
   */
  status: 'active' | 'waiting' | 'ended' | 'revoked'
}

export type KeyDirectory = ReturnType<typeof keyDirectory>

/**
 * The place to look up keys: their ledger rows, with the state that the fold and ClickHouse's clock give them. It has contact
 * addresses: only for operators, and for their owner. A read that takes longer than `msMax` throws.
 */
export function keyDirectory(tables: Pick<Tables, 'rows'>, databases: Databases, msMax = 10_000) {
  const read = (condition: string, value: string) =>
    tables.rows<KeyRecord>(
      { query: keysSql(databases, condition), query_params: { value } },
      { signal: AbortSignal.timeout(msMax) },
    )
  return {
    /** The keys of an account, oldest first. */
    ofAccount: (account: string) => read('ledger.account_id = {value:String}', account),
    /** The key of that name. For a text of 16 characters: the keys that begin with it. */
    find: (key: string) =>
      key.length === keyPrefixLength
        ? read('startsWith(ledger.api_key, {value:String})', key)
        : read('ledger.api_key = {value:String}', key),
  }
}

// A key that the fold has not seen is not listed, hence the inner join. If there are too many keys, revoked ones are left out, the oldest
// first.
function keysSql({ base }: Databases, condition: string): string {
  return `SELECT * FROM
            (SELECT ledger.api_key AS key, toString(ledger.version) AS version, ledger.account_id AS account_id,
              ledger.integration_name AS name, ledger.integration_url AS url,
              ledger.integration_contact_email AS contact_email, ledger.secret_hash AS secret_hash,
              ledger.scopes AS scopes, toUnixTimestamp64Milli(ledger.issued_at) AS issued_at_ms,
              toUnixTimestamp64Milli(ledger.expires_at) AS expires_at_ms,
              multiIf(NOT ledger.is_unrevoked, 'revoked', ifNull(ledger.expires_at <= now64(3, 'UTC'), 0), 'ended',
                folded.is_active, 'active', 'waiting') AS status
            FROM (SELECT * FROM ${base}.api_key_ledger FINAL) AS ledger
            INNER JOIN (SELECT * FROM ${base}.api_keys FINAL) AS folded ON folded.api_key = ledger.api_key
            WHERE ${condition} AND ledger.account_id != ''
            ORDER BY ledger.is_unrevoked DESC, ledger.issued_at DESC, ledger.api_key DESC LIMIT 1000)
            ORDER BY issued_at_ms, key`
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
  /** How long the key works, ms. Default: until it is revoked. */
  livesMs?: number | undefined
}

/** A key could not be issued or revoked. The message says why. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** How many keys of an account are active: the oldest that are not revoked. The fold decides. */
export const activeKeysMax = 3

export const visibleMsMax = 15_000
const withdrawnMsMax = 5_000
/** How long making a key waits for the tables: until expired keys have ended, it is folded, older keys are folded, and, if it fails, it is deleted. */
export const issueMsMax = 3 * visibleMsMax + withdrawnMsMax
const settleMsMin = 1_000

/**
 * Issues a key and returns it with its secret when it is active. Throws `KeyError` if it does not become active, or
 * the error of the log or of the directory. Then the key is deleted again, because its secret was never shown.
 */
export async function issueKey(admin: KeyAdmin, wanted: NewKey): Promise<{ key: string; secret: string }> {
  const keys = await admin.directory.ofAccount(wanted.account)
  await endExpired(admin, keys)
  if (activeOf(keys).length >= activeKeysMax) throw new KeyError(hasEnough(keys))
  const key = generateApiKey(admin.randomBytes)
  const secret = generateSecret(admin.randomBytes)
  try {
    // It may be written although it fails: the broker's answer can get lost.
    await appendStates(admin, [newState(admin, wanted, key, secret)])
    const record = await settled(admin, key)
    if (record?.status === 'active') return { key, secret }
    if (!record) throw new KeyError(notFolded)
    if (record.status !== 'waiting') throw new KeyError(endedMeanwhile)
    throw new KeyError(hasEnough(await admin.directory.ofAccount(wanted.account)))
  } catch (error) {
    const left = `the key ${keyPrefix(key)} may become active, and it could not be deleted again: revoke it if it is listed`
    await withdraw(admin, key).catch(() => {
      throw new KeyError(left, { cause: error })
    })
    throw error
  }
}

function newState(admin: KeyAdmin, wanted: NewKey, key: string, secret: string): ApiKeyState {
  const issuedAt = admin.now()
  return {
    key,
    account_id: wanted.account,
    integration: { name: wanted.name, url: wanted.url, contact_email: wanted.email },
    secret_hash: hashSecret(admin.pepper, secret),
    scopes: ['read:public'],
    status: 'ACTIVE',
    version: 1,
    changed_at: issuedAt,
    issued_at: issuedAt,
    expires_at: wanted.livesMs === undefined ? null : issuedAt + wanted.livesMs,
  }
}

/** Writes the end of keys that have expired, and waits until the ledger has it, so that they free their places. */
async function endExpired(admin: KeyAdmin, keys: readonly KeyRecord[]): Promise<void> {
  const ended = keys.filter(({ status }) => status === 'ended')
  const states = ended.flatMap(key => revokedState(key, admin.now()) ?? [])
  if (states.length === 0) return
  await appendStates(admin, states)
  await Promise.all(states.map(({ key }) => seen(admin, key, ({ status }) => status === 'revoked')))
}

/** Deletes a key that was never shown, and waits a while until no list has it. */
async function withdraw(admin: KeyAdmin, key: string): Promise<void> {
  await deleteKeys(admin, [key])
  // The tombstone is in the log, so the key ends even if it cannot be looked up now.
  const isGone = async () => (await admin.directory.find(key).catch(() => [])).length === 0 || undefined
  await untilFound(withdrawnMsMax, isGone, { ...admin, sleep })
}

function activeOf(keys: readonly KeyRecord[]): KeyRecord[] {
  return keys.filter(({ status }) => status === 'active')
}

function hasEnough(keys: readonly KeyRecord[]): string {
  const prefixes = activeOf(keys)
    .map(({ key }) => keyPrefix(key))
    .join(', ')
  return `there are three active keys already (${prefixes}); revoke one first`
}

/** The key as the fold has it, after every key that was issued before it is folded. */
async function settled(admin: KeyAdmin, key: string): Promise<KeyRecord | undefined> {
  const askedAt = admin.monotonicMs()
  const record = await seen(admin, key, () => true)
  if (record?.status !== 'active') return record
  // A key that was issued a moment earlier may be folded a moment later. Then this key may no longer be among the
  // three. On a busy machine a moment is as long as the fold of this key took.
  await sleep(Math.max(settleMsMin, admin.monotonicMs() - askedAt))
  // A key that is gone was deleted by another process.
  return (await admin.directory.find(key))[0] ?? { ...record, status: 'revoked' }
}

const notFolded = `the key was not folded within ${visibleMsMax / 1000} s, so it was deleted again`
const endedMeanwhile = 'the key was revoked or deleted while it was issued: issue another one'

/** Revokes by whole key or prefix, and resolves when the ledger has it: then the API refuses it. Throws `KeyError` if none or several match. */
export async function revokeKey(admin: KeyAdmin, keyOrPrefix: string): Promise<KeyRecord> {
  const [record, second] = await admin.directory.find(keyOrPrefix)
  if (!record) throw new KeyError(`there is no key ${keyOrPrefix}`)
  if (second) throw new KeyError(`several keys begin with ${keyOrPrefix}: give the whole key`)
  if (record.status === 'revoked') throw new KeyError(`key ${keyPrefix(record.key)} is revoked already`)
  const revocation = revokedState(record, admin.now())
  if (!revocation)
    throw new KeyError(
      `key ${keyPrefix(record.key)} has the highest version, so it can only be deleted: with pledgeview events append, append ` +
        '{"type":"api-key","key":"KEY","data":null}, where KEY is the whole key',
    )
  await appendStates(admin, [revocation])
  const revoked = await seen(admin, record.key, found => found.status === 'revoked')
  if (!revoked)
    throw new KeyError(
      `the key still works: its revocation is in the event log, but no projector has read it within ${visibleMsMax / 1000} s. It ` +
        'takes effect when one does',
    )
  return revoked
}

/** Appends these states in one call. */
export async function appendStates(
  { writer, encode = encodeState }: KeyAdmin,
  states: readonly ApiKeyState[],
): Promise<void> {
  await writer.append(states.map(data => recordOf({ type: 'api-key', key: data.key, data }, encode)))
}

/** Appends tombstones of these keys: they are deleted for good. */
export async function deleteKeys({ writer }: KeyAdmin, keys: readonly string[]): Promise<void> {
  await writer.append(keys.map(key => ({ topic: 'api-keys', key: Buffer.from(key), value: null })))
}

/** The key when the fold has it and the condition holds; `undefined` if that takes too long. */
export function seen(
  { directory, monotonicMs }: KeyAdmin,
  key: string,
  condition: (record: KeyRecord) => boolean,
): Promise<KeyRecord | undefined> {
  const look = async () => (await directory.find(key)).slice(0, 1).find(condition)
  return untilFound(visibleMsMax, look, { monotonicMs, sleep })
}
