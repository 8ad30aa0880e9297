/**
 * The events of a key's life after its issue, each a whole state. Pure.
 *
 * Several processes may write a key at once, each from the same state, so the versions decide which event holds, whatever
 * the order is in which they are read:
 * - a change of the name or the contact takes a random version above the last one, so that two states never share one;
 * - a revocation, also that of a key that has expired, ranks above these. Nothing takes it back.
 */
import type { ApiKeyState } from '../../contracts/events/event.ts'
import type { KeyRecord } from './api-keys.ts'
import type { RandomBytes } from './credentials.ts'

const versionMax = 2n ** 63n - 1n
const revocationStep = 2n ** 40n

/** The key is revoked; `undefined` if it has the highest version already. */
export function revokedState(record: KeyRecord, now: number): ApiKeyState | undefined {
  const version = BigInt(record.version)
  if (version >= versionMax) return undefined
  return { ...stateOf(record, now), status: 'REVOKED', version: atMostMax(version + revocationStep) }
}

/** The key has another name, web address or contact. */
export function changedState(
  record: KeyRecord,
  { name, url, contact_email }: Pick<KeyRecord, 'name' | 'url' | 'contact_email'>,
  now: number,
  randomBytes: RandomBytes,
): ApiKeyState {
  const step = 1 + Buffer.from(randomBytes(3)).readUIntLE(0, 3)
  const version = atMostMax(BigInt(record.version) + BigInt(step))
  return { ...stateOf(record, now), integration: { name, url, contact_email }, version }
}

function atMostMax(version: bigint): bigint {
  return version < versionMax ? version : versionMax
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
