/**
 * The keys of accounts, for people. Written by the same code as those of the CLI, all as `api-keys` events.
 *
 * Promises:
 * - A key whose secret was not received ends by itself: its first event says until when it has to be confirmed. So this also holds if
 *   the process is killed, and without a portal that runs (0001-ledger.sql).
 * - An old key expires only after the key that replaces it was confirmed. The new key's events say which key it replaces, so
 *   any portal can confirm it, and the sweeper completes what a killed process left (key-sweeper.ts).
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
  type NewKey,
  revokeKey,
  seen,
  visibleMsMax,
} from '../../shared/api-keys/api-keys.ts'
import { keyPrefix } from '../../shared/api-keys/credentials.ts'
import { confirmedState, expiringState } from '../../shared/api-keys/key-states.ts'
import { sleep as realSleep, type Sleep } from '../../shared/sleep.ts'
import type { Integration, Overlap, PortalKey, PortalKeys } from '../ports.ts'

export interface PortalKeysOptions {
  /** A key ends this long after its issue, unless it is confirmed. */
  confirmMsMax: number
  /** A key can no longer be confirmed this long before it ends: the confirmation has to be in the tables by then. */
  confirmMarginMs: number
  /** How many keys an account may create within a day, so that nobody fills the tables with revoked ones. */
  issuedPerDayMax: number
}

export const defaultPortalKeysOptions: PortalKeysOptions = {
  confirmMsMax: 120_000,
  confirmMarginMs: visibleMsMax,
  issuedPerDayMax: 20,
}

const overlapMs: Readonly<Record<Exclude<Overlap, 'at-once'>, number>> = {
  'one-hour': 3_600_000,
  'one-day': 86_400_000,
}

const dayMs = 86_400_000
const lookMs = 50

export function createPortalKeys(
  admin: KeyAdmin,
  options: PortalKeysOptions = defaultPortalKeysOptions,
  sleep: Sleep = realSleep,
): PortalKeys {
  async function issue(integration: Integration, replaces?: NewKey['replaces']) {
    const { account_id: account, name, url, contact_email: email } = integration
    await requireFewOfToday(admin, account, options.issuedPerDayMax)
    return issueKey(admin, {
      account,
      name,
      url,
      email,
      integrationId: integration.integration_id,
      confirmMsMax: options.confirmMsMax,
      ...(replaces && { replaces }),
    })
  }

  return {
    async ofAccount(accountId) {
      const keys = await admin.directory.ofAccount(accountId)
      return keys.filter(key => !isForgotten(key))
    },

    issue: integration => forPeople(() => issue(integration)),
    confirm: (accountId, key) => forPeople(() => confirm(admin, options, accountId, key)),

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
          await requireFewOfToday(admin, accountId, options.issuedPerDayMax)
          await requireRoomInsteadOf(admin, old)
          return replaceAtOnce(admin, old, () => issue(integration, replacing(old, null)), onRevoked)
        }
        await requireRoom(admin, old)
        return issue(integration, replacing(old, admin.now() + overlapMs[overlap]))
      }),

    deleteAll: (accountId, integrationId) =>
      forPeople(() => deleteAll(admin, accountId, integrationId, sleep)),
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

async function confirm(
  admin: KeyAdmin,
  { confirmMarginMs }: PortalKeysOptions,
  accountId: string,
  keyOrPrefix: string,
): Promise<void> {
  const record = await ownKey(admin, accountId, keyOrPrefix)
  requireAlive(record)
  const { confirm_by_ms: confirmBy, key } = record
  if (confirmBy === null) return
  const now = admin.now()
  if (now > confirmBy - confirmMarginMs) {
    throw new KeyError(
      'It took too long until the secret of this key was shown, so the key ends. Create another one.',
    )
  }
  const states = [confirmedState(record, now, admin.randomBytes)]
  const replaced = await replacedBy(admin, record)
  if (replaced && record.replaced_until_ms !== null) {
    states.push(expiringState(replaced, record.replaced_until_ms, now, admin.randomBytes))
  }
  await appendStates(admin, states)
  const confirmed = await seen(admin, key, ({ confirm_by_ms }) => confirm_by_ms === null)
  if (!confirmed) {
    throw new KeyError(
      `the confirmation of key ${keyPrefix(key)} is in the log, but no projector has read it within ${visibleMsMax / 1000} s`,
    )
  }
  requireAlive(confirmed)
}

/** The key that this one replaces, if it does not expire yet. */
async function replacedBy(
  admin: KeyAdmin,
  { replaces, account_id }: KeyRecord,
): Promise<KeyRecord | undefined> {
  if (replaces === '') return undefined
  const [old] = await admin.directory.find(replaces)
  return old?.account_id === account_id && isAlive(old) && old.expires_at_ms === null ? old : undefined
}

/** The account's key of that name or prefix. A key of another account is unknown here. */
async function ownKey(admin: KeyAdmin, accountId: string, keyOrPrefix: string): Promise<PortalKey> {
  const found = await admin.directory.find(keyOrPrefix)
  const [record, second] = found.filter(({ account_id }) => account_id === accountId)
  if (!record) throw new KeyError(`you have no key ${keyPrefix(keyOrPrefix)}`)
  if (second) throw new KeyError(`two of your keys begin with ${keyPrefix(keyOrPrefix)}: give the whole key`)
  return record
}

function requireAlive(record: KeyRecord): void {
  if (!isAlive(record)) throw new KeyError(`the key ${keyPrefix(record.key)} has ended; create another one`)
}

/** Throws unless a new key can be active beside the old one. */
async function requireRoom(admin: KeyAdmin, old: KeyRecord): Promise<void> {
  if (old.confirm_by_ms !== null) {
    throw new KeyError(
      'The secret of this key was not shown yet. Let it end at once: then you get a new secret.',
    )
  }
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

async function requireFewOfToday(admin: KeyAdmin, account: string, issuedMax: number): Promise<void> {
  const since = admin.now() - dayMs
  const keys = await admin.directory.ofAccount(account)
  const issued = keys.filter(({ issued_at_ms }) => issued_at_ms > since).length
  if (issued >= issuedMax) throw new KeyError(`You created ${issued} keys within a day. Try again tomorrow.`)
}

/** Deletes until the account (or its integration) has no key in the tables, also those that are issued meanwhile. */
async function deleteAll(
  admin: KeyAdmin,
  accountId: string,
  integrationId: string | undefined,
  sleep: Sleep,
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

/** It ended before its secret was shown. */
function isForgotten(key: KeyRecord): boolean {
  return key.confirm_by_ms !== null && !isAlive(key)
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
