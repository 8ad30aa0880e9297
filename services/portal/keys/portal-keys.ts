/**
 * The keys of accounts, for people. Written by the same code as those of the CLI, all as `api-keys` events.
 *
 * Promises:
 * - A key that is replaced expires at the moment that the new key's event says. The sweeper of any portal writes that into the
 *   old key's own events (key-sweeper.ts), so a killed process leaves nothing half done.
 * - A secret that did not arrive is lost like any other: its key is listed, and can be replaced or revoked.
 * - Of an account at most three keys are active, however many portals issue at once: the fold decides.
 * How it fails: with a `KeyError` for the person, or with the error of the log or of the tables.
 */
import {
  activeKeysMax,
  deleteKeys,
  issueKey,
  type KeyAdmin,
  KeyError,
  type KeyRecord,
  type NewKey,
  revokeKey,
  visibleMsMax,
} from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Integration, Overlap, PortalKey, PortalKeys } from '../ports.ts'

const overlapMs: Readonly<Record<Exclude<Overlap, 'at-once'>, number>> = {
  'one-hour': 3_600_000,
  'one-day': 86_400_000,
}

const lookMs = 50

export function createPortalKeys(admin: KeyAdmin): PortalKeys {
  function issue(integration: Integration, replaces?: NewKey['replaces']) {
    const {
      account_id: account,
      integration_id: integrationId,
      name,
      url,
      contact_email: email,
    } = integration
    return issueKey(admin, { account, name, url, email, integrationId, ...(replaces && { replaces }) })
  }

  return {
    ofAccount: accountId => keysOf(admin, accountId),

    issue: integration => issue(integration),

    async revoke(accountId, key) {
      const record = ownKey(await keysOf(admin, accountId), key)
      // A form that is sent twice asks for what is done already.
      return record.status === 'revoked' ? record : revokeKey(admin, record.key)
    },

    async replace(accountId, key, overlap, integration, onRevoked = () => undefined) {
      if (integration.account_id !== accountId) throw new Error('the integration is of another account')
      const keys = await keysOf(admin, accountId)
      const old = ownKey(keys, key)
      if (!isAlive(old)) throw new KeyError(`the key ${keyPrefix(old.key)} has ended; create another one`)
      if (overlap !== 'at-once') {
        requireRoomBeside(old, keys)
        return issue(integration, { key: old.key, until: admin.now() + overlapMs[overlap] })
      }
      // The old key ends only if nothing is known against a new one.
      requireRoomInsteadOf(old, keys)
      await revokeKey(admin, old.key)
      onRevoked()
      return issue(integration, { key: old.key, until: null }).catch((error: unknown) => {
        if (!(error instanceof KeyError)) throw error
        const what = `The key ${keyPrefix(old.key)} is revoked, but no new one was created`
        throw new KeyError(`${what}: ${error.message}`, { cause: error })
      })
    },

    deleteAll: (accountId, integrationId) => deleteAll(admin, accountId, integrationId),
  }
}

/** The keys of the account. A replaced key has its end from the event of its successor, before the sweeper has written it. */
async function keysOf(admin: KeyAdmin, accountId: string): Promise<PortalKey[]> {
  const keys = await admin.directory.ofAccount(accountId)
  const ends = keys.filter(({ replaced_until_ms }) => replaced_until_ms !== null)
  const endOf = (old: string) => ends.find(({ replaces }) => replaces === old)?.replaced_until_ms ?? null
  return keys.map(key => ({ ...key, expires_at_ms: key.expires_at_ms ?? endOf(key.key) }))
}

/** The account's key of that name or prefix. A key of another account is unknown here. */
function ownKey(keys: readonly PortalKey[], keyOrPrefix: string): PortalKey {
  const [record, second] = keys.filter(({ key }) => key === keyOrPrefix || keyPrefix(key) === keyOrPrefix)
  if (!record) throw new KeyError(`you have no key ${keyPrefix(keyOrPrefix)}`)
  if (second) throw new KeyError(`two of your keys begin with ${keyPrefix(keyOrPrefix)}: give the whole key`)
  return record
}

/** Throws unless a new key can be active beside the old one. */
function requireRoomBeside(old: PortalKey, keys: readonly PortalKey[]): void {
  if (old.expires_at_ms !== null)
    throw new KeyError('Another key replaces this one already. You can still let it end at once.')
  if (keys.filter(({ status }) => status === 'active').length < activeKeysMax) return
  throw new KeyError(
    'Three keys are active, so there is no room for a new one beside the old one. Let the old key end at once, or revoke another key first.',
  )
}

/** Throws unless a new key can be active once the old one has ended: a key that waits would take the old one's place. */
function requireRoomInsteadOf(old: PortalKey, keys: readonly PortalKey[]): void {
  if (keys.filter(record => isAlive(record) && record.key !== old.key).length < activeKeysMax) return
  throw new KeyError(
    'Three other keys are active or wait for a place, so there is no room for a new one. Revoke one of them first. Nothing was changed.',
  )
}

/** Deletes until the account (or its integration) has no key in the tables, also those that are issued meanwhile. */
async function deleteAll(
  admin: KeyAdmin,
  accountId: string,
  integrationId: string | undefined,
): Promise<void> {
  const deadline = admin.monotonicMs() + visibleMsMax
  const deleted = new Set<string>()
  for (;;) {
    const left = (await admin.directory.ofAccount(accountId))
      .filter(({ integration_id }) => integrationId === undefined || integration_id === integrationId)
      .map(({ key }) => key)
    if (left.length === 0) return
    const fresh = left.filter(key => !deleted.has(key))
    if (fresh.length > 0) await deleteKeys(admin, fresh)
    for (const key of fresh) deleted.add(key)
    if (admin.monotonicMs() > deadline) {
      throw new KeyError(
        `the deletion of ${left.length} keys is in the log, but no projector has read it within ${visibleMsMax / 1000} s`,
      )
    }
    await sleep(lookMs)
  }
}

function isAlive({ status }: KeyRecord): boolean {
  return status === 'active' || status === 'waiting'
}
