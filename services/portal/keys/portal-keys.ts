/**
 * The keys of accounts, for people. Written by the same code as those of the CLI, all as `api-keys` events.
 *
 * Promises:
 * - A key that is replaced has its end before the new one is made. So a killed process leaves no old key that works for ever.
 * - A secret that did not arrive is lost like any other: its key is listed, and can be replaced or revoked.
 * - Of an account at most three keys are active, however many portals issue at once: the fold decides.
 * How it fails: with a `KeyError` for the person, or with the error of the log or of the tables.
 */

import {
  activeKeysMax,
  appendStates,
  deleteKeys,
  issueKey,
  type KeyAdmin,
  KeyError,
  type KeyRecord,
  revokeKey,
  seen,
  visibleMsMax,
} from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { changedState, expiringState } from '../../api-keys/key-states.ts'
import { sleep, untilFound } from '../../runtime/async/sleep.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { Overlap, PortalKey } from '../ports.ts'
import { type KeyFields, lifetimeOf } from './key-fields.ts'

const overlapMs: Readonly<Record<Exclude<Overlap, 'at-once'>, number>> = {
  'one-hour': 3_600_000,
  'one-day': dayMs,
}

export type PortalKeys = ReturnType<typeof createPortalKeys>

export function createPortalKeys(admin: KeyAdmin) {
  const { directory, now, randomBytes } = admin

  async function ownKey(accountId: string, keyOrPrefix: string) {
    const keys = await directory.ofAccount(accountId)
    const [own, second] = keys.filter(({ key }) => key === keyOrPrefix || keyPrefix(key) === keyOrPrefix)
    // A key of another account is unknown here.
    if (!own) throw new KeyError(`you have no key ${keyPrefix(keyOrPrefix)}`)
    if (second)
      throw new KeyError(`two of your keys begin with ${keyPrefix(keyOrPrefix)}: give the whole key`)
    return { own, keys }
  }

  /** Resolves when the key is active. `livesMs`: how long it works; by default until it is revoked. */
  function issue(account: string, { name, url, contact_email: email }: KeyFields, livesMs?: number) {
    return issueKey(admin, { account, name, url, email, livesMs })
  }

  /** Writes a state of a key, and waits until the ledger has it. */
  async function write(state: ReturnType<typeof changedState>): Promise<void> {
    await appendStates(admin, [state])
    const written = await seen(admin, state.key, ({ version }) => BigInt(version) >= BigInt(state.version))
    if (!written) throw new KeyError(`the change is in the log, ${notRead}`)
  }

  return {
    /** The keys of an account, oldest first. It includes the revoked and the ended ones. */
    ofAccount: (accountId: string): Promise<PortalKey[]> => directory.ofAccount(accountId),

    issue,

    /** Gives the key another name, web address or contact. Throws `KeyError` if it has ended. */
    async change(accountId: string, key: string, fields: KeyFields): Promise<void> {
      const { own } = await ownKey(accountId, key)
      if (!isAlive(own)) throw new KeyError(`the key ${keyPrefix(own.key)} has ended`)
      await write(changedState(own, fields, now(), randomBytes))
    },

    /** By the first 16 characters or the whole key. Throws `KeyError` if the account has no such key. */
    async revoke(accountId: string, key: string): Promise<PortalKey> {
      const { own } = await ownKey(accountId, key)
      // A form that is sent twice asks for what is done already.
      return own.status === 'revoked' ? own : revokeKey(admin, own.key)
    },

    /**
     * A new key with the fields and the lifetime of the old one. The old one ends first, or gets its end. `onRevoked`: it was revoked at
     * once; called also if no new one can be made after all.
     */
    async replace(accountId: string, key: string, overlap: Overlap, onRevoked = () => {}) {
      const { own: old, keys } = await ownKey(accountId, key)
      if (!isAlive(old)) throw new KeyError(`the key ${keyPrefix(old.key)} has ended; create another one`)
      const lifeEnd = old.expires_at_ms ?? Number.POSITIVE_INFINITY
      const until = overlap === 'at-once' ? null : Math.min(now() + overlapMs[overlap], lifeEnd)
      // The old key ends only if nothing is known against a new one.
      if (until === null) {
        requireRoomInsteadOf(old, keys)
        await revokeKey(admin, old.key)
        onRevoked()
      } else {
        requireRoomBeside(old, keys)
        await write(expiringState(old, until, now(), randomBytes))
      }
      return issue(accountId, old, lifetimeOf(old)).catch((error: unknown) => {
        if (!(error instanceof KeyError)) throw error
        const state = until === null ? 'is revoked' : `ends at ${new Date(until).toISOString()}`
        const what = `The key ${keyPrefix(old.key)} ${state}, and there is no new one that you can use`
        throw new KeyError(`${what}: ${error.message}`, { cause: error })
      })
    },

    /** Deletes every key of the account, also the revoked ones, with the addresses that they carry. */
    deleteAll: (accountId: string) => deleteAll(admin, accountId),
  }
}

/** Throws unless a new key can be active beside the old one. */
function requireRoomBeside(old: KeyRecord, keys: readonly KeyRecord[]): void {
  if (old.expires_at_ms !== null && lifetimeOf(old) === undefined)
    throw new KeyError('Another key replaces this one already. You can still let it end at once.')
  if (keys.filter(({ status }) => status === 'active').length < activeKeysMax) return
  throw new KeyError(
    'Three keys are active, so there is no room for a new one beside the old one. Let the old key end at once, or revoke another key first.',
  )
}

/** Throws unless a new key can be active once the old one has ended: a key that waits would take the old one's place. */
function requireRoomInsteadOf(old: KeyRecord, keys: readonly KeyRecord[]): void {
  if (keys.filter(record => isAlive(record) && record.key !== old.key).length < activeKeysMax) return
  throw new KeyError(
    'Three other keys are active or wait for a place, so there is no room for a new one. Revoke one of them first. Nothing was changed.',
  )
}

/** Deletes until the account has no key in the tables, also those that are issued meanwhile. */
async function deleteAll(admin: KeyAdmin, accountId: string): Promise<void> {
  const deleted = new Set<string>()
  let left: string[] = []
  const isEmpty = async () => {
    left = (await admin.directory.ofAccount(accountId)).map(({ key }) => key)
    const fresh = left.filter(key => !deleted.has(key))
    if (fresh.length > 0) await deleteKeys(admin, fresh)
    for (const key of fresh) deleted.add(key)
    return left.length === 0 || undefined
  }
  if (!(await untilFound(visibleMsMax, isEmpty, { ...admin, sleep })))
    throw new KeyError(`the deletion of ${left.length} keys is in the log, ${notRead}`)
}

const notRead = `but no projector has read it within ${visibleMsMax / 1000} s`

function isAlive({ status }: KeyRecord): boolean {
  return status === 'active' || status === 'waiting'
}
