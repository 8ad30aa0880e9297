/** What a key of an account can do now, and which of its buttons make sense. */
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { PortalKey } from '../ports.ts'
import type { KeyUsage } from '../usage/usage-reader.ts'

/** A key with its usage, or without it if the usage could not be read. */
export interface KeyView {
  key: PortalKey
  usage: KeyUsage | undefined
}

/** The state of the key at that moment. The ledger may name a key active for some seconds after its time is over. */
export function keyState({ status, expires_at_ms: end }: PortalKey, now: number): PortalKey['status'] {
  return status !== 'revoked' && end !== null && end <= now ? 'ended' : status
}

/** Whether the key is or may become usable: it can be revoked. */
export function isAlive(key: PortalKey, now: number): boolean {
  return ['active', 'waiting'].includes(keyState(key, now))
}

/** How many of the keys count against the limit of active keys. */
export function activeCount(keys: readonly PortalKey[], now: number): number {
  return keys.filter(key => keyState(key, now) === 'active').length
}

/** The page of a key. The address has the first 16 characters only: it ends up in logs. */
export function keyPath(key: Pick<PortalKey, 'key'>): string {
  return `/access/keys/${encodeURIComponent(keyPrefix(key.key))}`
}

/** The form of a new key, filled from this one. */
export function likePath({ key }: Pick<PortalKey, 'key'>): string {
  return `/access/keys/new?like=${encodeURIComponent(keyPrefix(key))}`
}

/** The key of the account that a path names by its first 16 characters. `undefined` if none or several match. */
export function keyOfPath(keys: readonly PortalKey[], name: string): PortalKey | undefined {
  const matching = keys.filter(({ key }) => keyPrefix(key) === name)
  return matching.length === 1 ? matching[0] : undefined
}
