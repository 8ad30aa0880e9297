/**
 * The accounts of the portal, in the topic `accounts`. Any number of portals use it at once. Account and integrations are separate
 * records, so two portals that change different things at once never undo each other. If they change the same thing, the
 * later one stays.
 *
 * Two rules need more than one record: an account has at most `integrationsMax` integrations, and a deleted account has none.
 * Whoever writes looks again afterwards. So of two at once, the later one sees the other, and takes its own back.
 *
 * A deletion is noted first: the record of an account that is being deleted has a mark in place of its address. So any process
 * can complete a deletion that a killed one began (account/finish-deletions.ts).
 */
import type { Logger } from 'pino'
import type { AccountState, IntegrationState } from '../../../contracts/events/portal-event.ts'
import type { KeyedState, StateChange, StateTopic } from '../../shared/event-log/state-topic.ts'
import type { Account, Accounts, Integration } from '../ports.ts'
import { accountIdOf, checkEmail } from './email.ts'
import { checkIntegration, type FieldFaults } from './integration.ts'

export interface AccountsDependencies {
  topic: StateTopic<'accounts'>
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  now: () => number
  logger: Logger
}

/** A rule does not allow it. The message is for people. */
export class AccountError extends Error {
  override name = 'AccountError'
  readonly code: AccountErrorCode
  /** For `invalid`: what is wrong with which field. */
  readonly faults: FieldFaults

  constructor(code: AccountErrorCode, message: string, faults: FieldFaults = {}) {
    super(message)
    this.code = code
    this.faults = faults
  }
}

export type AccountErrorCode =
  | 'invalid'
  | 'too-many-integrations'
  | 'no-account'
  | 'no-integration'
  | 'being-deleted'

/** The most integrations of an account. */
export const integrationsMax = 20

const endSessionsTriesMax = 5
// Two sign-ups at once are this close together. The later record must not end the session that the earlier one began.
const meetMsMax = 10_000

/**
 * The accounts in the topic; `close` closes it too. Removes integrations that a killed process has left of deleted accounts. Throws
 * if the accounts were made with another key: then nobody could sign in to an account that exists.
 */
export async function openAccounts(dependencies: AccountsDependencies): Promise<Accounts> {
  const { topic, portalKey, now } = dependencies
  const accounts = over(dependencies)
  await topic.refresh()
  checkKey(await topic.all(), portalKey)
  await removeLeft(dependencies)
  return {
    ...accounts,
    async ofVerifiedEmail(email) {
      const checked = checkEmail(email)
      if ('reason' in checked) throw new AccountError('invalid', `The e-mail address ${checked.reason}.`)
      const accountId = accountIdOf(portalKey, checked.email)
      await topic.refresh()
      const present = await accounts.find(accountId)
      if (present) return present
      if ((await accounts.beingDeleted()).includes(accountId)) {
        throw new AccountError(
          'being-deleted',
          'This account is being deleted. In a minute you can sign in to a new one.',
        )
      }
      const at = now()
      const state = {
        account_id: accountId,
        email: checked.email,
        created_at: at,
        sessions_valid_from: at - meetMsMax,
      }
      await topic.write([{ key: accountId, state: { type: 'account', data: { ...state, changed_at: at } } }])
      // Another portal may have made it a moment later. Then that record counts, everywhere.
      return (await accounts.find(accountId)) ?? state
    },
  }
}

function over({ topic, now }: AccountsDependencies): Omit<Accounts, 'ofVerifiedEmail'> {
  async function find(accountId: string): Promise<Account | undefined> {
    const state = await topic.get(accountId)
    return state?.type === 'account' && !isMark(state.data) ? accountOf(state.data) : undefined
  }

  async function integrations(accountId: string): Promise<Integration[]> {
    const states = await topic.group(accountId)
    return states
      .flatMap(({ state }) => (state.type === 'integration' ? [integrationOf(state.data)] : []))
      .sort((a, b) => a.created_at - b.created_at || (a.integration_id < b.integration_id ? -1 : 1))
  }

  async function mustFind(accountId: string): Promise<Account> {
    const account = await find(accountId)
    if (!account) throw new AccountError('no-account', 'This account does not exist any more.')
    return account
  }

  return {
    find,
    integrations,

    async endSessions(accountId) {
      await topic.refresh()
      // The clock of the portal that wrote it last may be ahead. Its sessions have to end too.
      const validFrom = Math.max(now(), (await mustFind(accountId)).sessions_valid_from + 1)
      for (let tries = 0; tries < endSessionsTriesMax; tries++) {
        await topic.refresh()
        const account = await mustFind(accountId)
        // Another portal may have written what it read before.
        if (account.sessions_valid_from >= validFrom) return
        const data = { ...account, sessions_valid_from: validFrom, changed_at: now() }
        await topic.write([{ key: accountId, state: { type: 'account', data } }])
      }
      if ((await mustFind(accountId)).sessions_valid_from < validFrom) {
        throw new Error('the sessions could not be ended: another process changes the account all the time')
      }
    },

    async saveIntegration(integration) {
      const checked = checkIntegration(integration)
      if ('faults' in checked) throw invalid(checked.faults)
      const { account_id: accountId, integration_id: id } = integration
      await topic.refresh()
      await mustFind(accountId)
      const present = await integrations(accountId)
      const isNew = !present.some(({ integration_id }) => integration_id === id)
      if (isNew && present.length >= integrationsMax) throw tooMany()
      const data: IntegrationState = {
        ...{ integration_id: id, account_id: accountId, ...checked.fields },
        ...{ created_at: integration.created_at, changed_at: now() },
      }
      const key = integrationKey(integration)
      await topic.write([{ key, state: { type: 'integration', data } }])
      // The write has read the topic up to its end: what others wrote before it is in memory now.
      const isDeleted = (await find(accountId)) === undefined
      const isBeyond = isNew && (await integrations(accountId)).length > integrationsMax
      if (!isDeleted && !isBeyond) return
      await topic.write([{ key, state: null }])
      if (isDeleted) await mustFind(accountId)
      throw tooMany()
    },

    async removeIntegration(accountId, integrationId) {
      await topic.refresh()
      const key = integrationKey({ account_id: accountId, integration_id: integrationId })
      if (!(await topic.get(key))) {
        throw new AccountError('no-integration', 'This integration does not exist any more.')
      }
      await topic.write([{ key, state: null }])
    },

    async beginDeletion(accountId) {
      await topic.refresh()
      const account = await find(accountId)
      if (!account) return
      const mark = { ...account, email: markText, changed_at: now() }
      await topic.write([{ key: accountId, state: { type: 'account', data: mark } }])
      const left = (await topic.group(accountId)).filter(({ key }) => key !== accountId)
      if (left.length > 0) await topic.write(tombstonesOf(left))
    },

    async beingDeleted() {
      const states = await topic.all()
      return states.flatMap(({ state }) =>
        state.type === 'account' && isMark(state.data) ? [state.data.account_id] : [],
      )
    },

    async delete(accountId) {
      // The account comes first: a portal that adds an integration after its tombstone takes it back.
      await topic.write([{ key: accountId, state: null }])
      const left = await topic.group(accountId)
      if (left.length > 0) await topic.write(tombstonesOf(left))
    },

    close: () => topic.close(),
  }
}

/** Integrations without an account: a process was killed while it deleted the account, or before it took one back. */
async function removeLeft({ topic, logger }: AccountsDependencies): Promise<void> {
  const candidates = (await topic.all()).filter(({ state }) => state.type === 'integration')
  const isLeft = async ({ state }: KeyedState<'accounts'>) => !(await topic.get(state.data.account_id))
  const looked = await Promise.all(
    candidates.map(async candidate => ((await isLeft(candidate)) ? candidate : [])),
  )
  if (looked.flat().length === 0) return
  // The account of an integration was written before it, perhaps in a partition that was read earlier.
  await topic.refresh()
  const left: KeyedState<'accounts'>[] = []
  for (const candidate of looked.flat()) if (await isLeft(candidate)) left.push(candidate)
  if (left.length === 0) return
  // An account that this version cannot read is no deleted one.
  if (topic.skipped() > 0) {
    logger.warn(
      { integrations: left.length },
      'integrations without an account stay, because the topic has records that cannot be read',
    )
    return
  }
  await topic.write(tombstonesOf(left))
  logger.warn({ integrations: left.length }, 'integrations of deleted accounts were left; they are removed')
}

function tombstonesOf(states: readonly KeyedState<'accounts'>[]): StateChange<'accounts'>[] {
  return states.map(({ key }) => ({ key, state: null }))
}

/** Every id is made of its address with the key. One that fits is enough. */
function checkKey(states: readonly KeyedState<'accounts'>[], portalKey: string): void {
  const accounts = states.flatMap(({ state }) =>
    state.type === 'account' && !isMark(state.data) ? [state.data] : [],
  )
  const isOwn = ({ account_id, email }: AccountState) => accountIdOf(portalKey, email) === account_id
  if (accounts.length === 0 || accounts.slice(0, keySampleMax).some(isOwn)) return
  throw new Error(
    'PLEDGEVIEW_PORTAL_KEY is not the key that the accounts were made with; set it to the first value, or no account is found',
  )
}

const keySampleMax = 100

// No address: it has no @.
const markText = 'being deleted'

/** The account is being deleted. */
function isMark({ email }: AccountState): boolean {
  return email === markText
}

function accountOf({ account_id, email, created_at, sessions_valid_from }: AccountState): Account {
  return { account_id, email, created_at, sessions_valid_from }
}

function integrationOf(state: IntegrationState): Integration {
  const { integration_id, account_id, name, url, contact_email, created_at } = state
  return { integration_id, account_id, name, url, contact_email, created_at }
}

/** The key of an integration's record. */
export function integrationKey({
  account_id,
  integration_id,
}: Pick<Integration, 'account_id' | 'integration_id'>): string {
  return `${account_id}/${integration_id}`
}

function invalid(faults: FieldFaults): AccountError {
  const labels = { name: 'The name', url: 'The URL', contact_email: 'The contact address' } as const
  const names = ['name', 'url', 'contact_email'] as const
  const sentences = names.flatMap(name => (faults[name] ? [`${labels[name]} ${faults[name]}.`] : []))
  return new AccountError('invalid', sentences.join(' '), faults)
}

function tooMany(): AccountError {
  return new AccountError(
    'too-many-integrations',
    `An account has at most ${integrationsMax} integrations. Remove one first.`,
  )
}
