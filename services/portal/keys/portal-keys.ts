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
    const { account_id: account, name, url, contact_email: email } = integration
    return issueKey(admin, {
      account,
      name,
      url,
      email,
      integrationId: integration.integration_id,
      ...(replaces && { replaces }),
    })
  }

  return {
    ofAccount: accountId => keysOf(admin, accountId),

    issue: integration => forPeople(() => issue(integration)),

    revoke: (accountId, key) =>
      forPeople(async () => {
        const record = await ownKey(admin, accountId, key)
        // A form that is sent twice asks for what is done already.
        return record.status === 'revoked' ? record : revokeKey(admin, record.key)
      }),

    replace: (accountId, key, overlap, integration, onRevoked) =>
      forPeople(async () => {
        if (integration.account_id !== accountId) throw new Error('the integration is of another account')
        const old = await ownKey(admin, accountId, key)
        requireAlive(old)
        if (overlap === 'at-once') {
          // The old key ends only if nothing is known against a new one.
          await requireRoomInsteadOf(admin, old)
          return replaceAtOnce(admin, old, () => issue(integration, replacing(old, null)), onRevoked)
        }
        await requireRoom(admin, old)
        return issue(integration, replacing(old, admin.now() + overlapMs[overlap]))
      }),

    deleteAll: (accountId, integrationId) => forPeople(() => deleteAll(admin, accountId, integrationId)),
  }
}

function replacing({ key }: KeyRecord, until: number | null): NonNullable<NewKey['replaces']> {
  return { key, until }
}

async function replaceAtOnce<T>(
  admin: KeyAdmin,
  old: KeyRecord,
  issueNew: () => Promise<T>,
  onRevoked: () => void = () => undefined,
): Promise<T> {
  await revokeKey(admin, old.key)
  onRevoked()
  try {
    return await issueNew()
  } catch (error) {
    if (!(error instanceof KeyError)) throw error
    const prefix = keyPrefix(old.key)
    throw new KeyError(`The key ${prefix} is revoked, but no new one was created: ${error.message}`, {
      cause: error,
    })
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
async function ownKey(admin: KeyAdmin, accountId: string, keyOrPrefix: string): Promise<PortalKey> {
  const keys = await keysOf(admin, accountId)
  const [record, second] = keys.filter(({ key }) => key === keyOrPrefix || keyPrefix(key) === keyOrPrefix)
  if (!record) throw new KeyError(`you have no key ${keyPrefix(keyOrPrefix)}`)
  if (second) throw new KeyError(`two of your keys begin with ${keyPrefix(keyOrPrefix)}: give the whole key`)
  return record
}

function requireAlive(record: KeyRecord): void {
  if (!isAlive(record)) throw new KeyError(`the key ${keyPrefix(record.key)} has ended; create another one`)
}

/** Throws unless a new key can be active beside the old one. */
async function requireRoom(admin: KeyAdmin, old: KeyRecord): Promise<void> {
  if (old.expires_at_ms !== null) {
    throw new KeyError('Another key replaces this one already. You can still let it end at once.')
  }
  const keys = await admin.directory.ofAccount(old.account_id)
  const active = keys.filter(({ status }) => status === 'active')
  if (active.length >= activeKeysMax) {
    throw new KeyError(
      'Three keys are active, so there is no room for a new one beside the old one. Let the old key end at once, or revoke another key first.',
    )
  }
}

/** Throws unless a new key can be active once the old one has ended: a key that waits would take the old one's place. */
async function requireRoomInsteadOf(admin: KeyAdmin, old: KeyRecord): Promise<void> {
  const keys = await admin.directory.ofAccount(old.account_id)
  const others = keys.filter(record => isAlive(record) && record.key !== old.key)
  if (others.length < activeKeysMax) return
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

/** A `KeyError` as a sentence: pages show it as it is. */
async function forPeople<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof KeyError) error.message = sentence(error.message)
    throw error
  }
}

function sentence(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`
  return ended.charAt(0).toUpperCase() + ended.slice(1)
}
