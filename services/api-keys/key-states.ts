/**
 * The events of a key's life after its issue, each a whole state. Pure.
 *
 * Several processes may write a key at once, each from the same state, so the versions decide which event holds, whatever
 * the order is in which they are read:
 * - a change of the name or the contact takes a random version above the last one, so that two states never share one;
 * - an expiry ranks above a change that is written at the same time;
 * - a revocation, also that of a key that has expired, ranks above all of these. Nothing takes it back.
 */
import type { ApiKeyState } from '../../contracts/events/event.ts'
import type { KeyRecord } from './api-keys.ts'
import type { RandomBytes } from './credentials.ts'

const versionMax = 2n ** 63n - 1n
const expiryStep = 2n ** 24n
const revocationStep = 2n ** 40n

/** The key is revoked; `undefined` if it has the highest version already. */
export function revokedState(record: KeyRecord, now: number): ApiKeyState | undefined {
  const version = BigInt(record.version)
  if (version >= versionMax) return undefined
  const above = version + revocationStep
  return { ...stateOf(record, now), status: 'REVOKED', version: above < versionMax ? above : versionMax }
}

/** The key expires at this moment (Unix ms). */
export function expiringState(
  record: KeyRecord,
  expiresAt: number,
  now: number,
  randomBytes: RandomBytes,
): ApiKeyState {
  return {
    ...stateOf(record, now),
    expires_at: expiresAt,
    version: nextVersion(record, expiryStep, randomBytes),
  }
}

/** The key has another name, web address or contact. */
export function changedState(
  record: KeyRecord,
  { name, url, contact_email }: Pick<KeyRecord, 'name' | 'url' | 'contact_email'>,
  now: number,
  randomBytes: RandomBytes,
): ApiKeyState {
  const integration = { name, url, contact_email }
  return { ...stateOf(record, now), integration, version: nextVersion(record, 0n, randomBytes) }
}

function nextVersion(record: KeyRecord, step: bigint, randomBytes: RandomBytes): bigint {
  const [low = 0, middle = 0, high = 0] = randomBytes(3)
  const next = BigInt(record.version) + 1n + step + BigInt(low + middle * 256 + high * 65_536)
  return next < versionMax ? next : versionMax
}

function stateOf(record: KeyRecord, now: number): ApiKeyState {
  return {
    key: record.key,
    account_id: record.account_id,
    integration: { name: record.name, url: record.url, contact_email: record.contact_email },
    secret_hash: record.secret_hash,
    scopes: record.scopes,
    status: 'ACTIVE',
    version: BigInt(record.version),
    changed_at: now,
    issued_at: record.issued_at_ms,
    expires_at: record.expires_at_ms,
  }
}
