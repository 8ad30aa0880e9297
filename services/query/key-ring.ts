/**
 * The key ring: the active API keys in memory, following the read table, so that authentication needs no store and a
 * revoked key is refused within two seconds.
 */
import type { Databases, Tables } from '../shared/tables/port.ts'

export interface ApiKey {
  key: string
  /** Lower-case hex, see `hashSecret`. */
  secretHash: string
  scopes: readonly string[]
}

export interface KeyRing {
  /** Loads the keys once and then follows them. Resolves after the first attempt, whether or not it succeeded. */
  start(): Promise<void>
  /** Stops following, and waits for the poll that may be running. */
  close(): Promise<void>
  /** The active key of that name, or `undefined`. Throws `KeysUnavailableError` while the keys are not known. */
  lookup(key: string): ApiKey | undefined
  /** Whether the last poll succeeded, recently enough that a revoked key would have been noticed. */
  isReady(): boolean
}

export interface KeyRingOptions {
  /** Pause between two looks at the table. */
  pollMs: number
  /** Bound on one look, after which it counts as failed. */
  pollTimeoutMs: number
  /** A full reload at least this often, whatever the cheap check says. */
  reloadMsMax: number
  /** How long the last known keys are trusted while the tables do not answer. */
  staleMsMax: number
}

export interface KeyRingDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: KeyRingOptions
  /** Unix milliseconds. */
  now: () => number
  /** Told of every failed poll, for the log. */
  onError: (error: unknown) => void
}

export const defaultKeyRingOptions: KeyRingOptions = {
  pollMs: 500,
  pollTimeoutMs: 1000,
  reloadMsMax: 60_000,
  staleMsMax: 60_000,
}

/** The keys are not known: never loaded, or not confirmed for longer than they may be trusted. */
export class KeysUnavailableError extends Error {
  override name = 'KeysUnavailableError'
}

/** Makes a key ring that has not started. */
export declare function createKeyRing(dependencies: KeyRingDependencies): KeyRing
