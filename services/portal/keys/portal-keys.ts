/**
 * The keys of accounts, for people. Written by the same code as those of the CLI, all as `api-keys` events.
 *
 * Promises:
 * - A secret that did not arrive is lost like any other: its key is listed, and can be revoked.
 * - Of an account at most three keys are active, however many portals issue at once: the fold decides.
 * How it fails: with a `KeyError` for the person, with `PortalUnavailable` if the log does not take a record in time, or with the
 * error of the log or of the tables. A record that the log takes late lands before those that are appended after it.
 */

import {
  appendStates,
  deleteKeys,
  issueKey,
  type KeyAdmin,
  KeyError,
  revokeKey,
  seen,
  visibleMsMax,
} from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { changedState, revokedState } from '../../api-keys/key-states.ts'
import type { NewRecord } from '../../log/port.ts'
import { sleep, untilFound, within } from '../../runtime/async/sleep.ts'
import { PortalUnavailable } from '../own-events.ts'
import type { PortalKey } from '../ports.ts'
import type { KeyFields } from './key-fields.ts'

export type PortalKeys = ReturnType<typeof createPortalKeys>

/** Whether the key is or may become usable: it can be changed and revoked. */
export function isAlive({ status }: PortalKey): boolean {
  return status === 'active' || status === 'waiting'
}

// A request may make several appends, and wait for the tables between them (server-options.ts).
export const appendMsMax = 10_000

export function createPortalKeys(given: KeyAdmin, bounds = { appendMsMax }) {
  const late = () => new PortalUnavailable('the event log did not take a change of keys in time')
  const adminWith = (append: KeyAdmin['writer']['append']): KeyAdmin => ({
    ...given,
    writer: { ...given.writer, append: records => within(bounds.appendMsMax, append(records), late) },
  })
  const admin = adminWith(given.writer.append)
  const { directory, now, randomBytes } = admin
  return {
    /** The keys of an account, oldest first. It includes the revoked and the ended ones. */
    ofAccount: (accountId: string): Promise<PortalKey[]> => directory.ofAccount(accountId),

    /** Resolves when the key is active. `livesMs`: how long it works; by default until it is revoked. */
    issue: (account: string, { name, url, contact_email: email }: KeyFields, livesMs?: number) =>
      issueKey(admin, { account, name, url, email, livesMs }),

    /** Gives the key another name, web address or contact. Throws `KeyError` if it has ended, also meanwhile. */
    async change(key: PortalKey, fields: KeyFields): Promise<void> {
      const hasEnded = new KeyError(`the key ${keyPrefix(key.key)} has ended`)
      if (!isAlive(key)) throw hasEnded
      const state = changedState(key, fields, now(), randomBytes)
      await appendStates(admin, [state])
      const written = await seen(admin, state.key, ({ version }) => BigInt(version) >= BigInt(state.version))
      if (!written) throw new KeyError(`the change is in the log, ${notRead}`)
      if (written.status !== 'revoked') return
      // It was revoked meanwhile, maybe before the change in the log. A compacted topic would keep the change alone.
      const revocation = revokedState(written, now())
      if (revocation) await appendStates(admin, [revocation])
      throw hasEnded
    },

    /** `onAppended`: the log has it, so it lands, whatever fails after that. The log may take it after this has rejected. */
    revoke({ key }: PortalKey, onAppended: () => void = () => {}): Promise<PortalKey> {
      const append = (records: readonly NewRecord[]) => given.writer.append(records).then(onAppended)
      return revokeKey(adminWith(append), key)
    },

    /**
     * Deletes until the account has no key in the tables, also the revoked ones and those that are issued meanwhile, with the addresses
     * that they carry.
     */
    async deleteAll(accountId: string): Promise<void> {
      const deleted = new Set<string>()
      let left: string[] = []
      const isEmpty = async () => {
        left = (await directory.ofAccount(accountId)).map(({ key }) => key)
        const fresh = left.filter(key => !deleted.has(key))
        if (fresh.length > 0) await deleteKeys(admin, fresh)
        for (const key of fresh) deleted.add(key)
        return left.length === 0 || undefined
      }
      if (!(await untilFound(visibleMsMax, isEmpty, { ...admin, sleep })))
        throw new KeyError(`the deletion of ${left.length} keys is in the log, ${notRead}`)
    },
  }
}

const notRead = `but no projector has read it within ${visibleMsMax / 1000} s`
