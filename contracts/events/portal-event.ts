/**
 * The states that the developer portal keeps in topics of its own: accounts, integrations and notices. Only Pledgeview
 * writes and reads them, and the projector does not: so no e-mail address of an account reaches a read table.
 *
 * They differ from the change events in one rule: **the record of a key that was appended last counts**, and a tombstone is
 * no exception. So a person who deleted the account may sign up again with the same address.
 */
import type { Long, TimestampMs } from './event.ts'
import type { Fault } from './rules.ts'

export const portalTopics = ['accounts', 'notices'] as const
export type PortalTopic = (typeof portalTopics)[number]

export const portalTypes = ['account', 'integration', 'notice'] as const
export type PortalType = (typeof portalTypes)[number]

export const portalTopicOf: Readonly<Record<PortalType, PortalTopic>> = {
  account: 'accounts',
  integration: 'accounts',
  notice: 'notices',
}

export interface AccountState {
  account_id: string
  email: string
  created_at: TimestampMs
  sessions_valid_from: TimestampMs
  changed_at: TimestampMs
}

export interface IntegrationState {
  integration_id: string
  account_id: string
  name: string
  url: string
  contact_email: string
  created_at: TimestampMs
  changed_at: TimestampMs
}

export type NoticeRule = 'UNKNOWN' | 'KEY_CREATED' | 'KEY_REVOKED' | 'RUNAWAY_TRAFFIC' | 'ANNOUNCEMENT'

export type NoticeStatus = 'UNKNOWN' | 'WAITING' | 'SENT' | 'GIVEN_UP' | 'SENDING'

export interface NoticeState {
  notice_id: string
  rule: NoticeRule
  status: NoticeStatus
  account_id: string | null
  recipient: string
  subject: string
  text: string
  attempts: number
  created_at: TimestampMs
  sent_at: TimestampMs | null
  changed_at: TimestampMs
  /** Not null: a claim, a record of its own. */
  sender: string | null
}

/** What a record of the topic `accounts` holds. */
export type AccountEvent =
  | { type: 'account'; data: AccountState }
  | { type: 'integration'; data: IntegrationState }

/** What a record of the topic `notices` holds. */
export type NoticeEvent = { type: 'notice'; data: NoticeState }

export type PortalEvent = AccountEvent | NoticeEvent

/** The events of each topic. */
export interface PortalEventOf {
  accounts: AccountEvent
  notices: NoticeEvent
}

/** The most characters of an id in these topics. */
export const portalIdLengthMax = 200

/** The message key of an event. */
export function portalKeyOf(event: PortalEvent): string {
  switch (event.type) {
    case 'account':
      return event.data.account_id
    case 'integration':
      return `${event.data.account_id}/${event.data.integration_id}`
    case 'notice':
      return event.data.sender === null
        ? event.data.notice_id
        : `${event.data.notice_id}/${event.data.sender}`
    default:
      return event satisfies never
  }
}

/** The first rule of the topics that an event breaks, or `undefined`. Pure. */
export function portalFaultOf(event: PortalEvent): Fault | undefined {
  switch (event.type) {
    case 'account':
      return (
        idFault('account_id', event.data.account_id) ??
        (event.data.email === '' ? { field: 'email', reason: 'is empty' } : undefined) ??
        numberFault('created_at', event.data.created_at) ??
        numberFault('sessions_valid_from', event.data.sessions_valid_from) ??
        numberFault('changed_at', event.data.changed_at)
      )
    case 'integration':
      return (
        idFault('account_id', event.data.account_id) ??
        idFault('integration_id', event.data.integration_id) ??
        numberFault('created_at', event.data.created_at) ??
        numberFault('changed_at', event.data.changed_at)
      )
    case 'notice':
      return (
        idFault('notice_id', event.data.notice_id) ??
        (event.data.sender === null ? undefined : idFault('sender', event.data.sender)) ??
        numberFault('attempts', event.data.attempts) ??
        numberFault('created_at', event.data.created_at) ??
        numberFault('sent_at', event.data.sent_at ?? 0) ??
        numberFault('changed_at', event.data.changed_at)
      )
    default:
      return event satisfies never
  }
}

/** A time up to the year 9999, or a count. Damaged bytes may be any 64-bit integer. */
function numberFault(field: string, value: Long): Fault | undefined {
  return typeof value === 'number' && value >= 0 && value <= numberMax
    ? undefined
    : { field, reason: 'is out of range' }
}

const numberMax = Date.UTC(9999, 11, 31)

function idFault(field: string, id: string): Fault | undefined {
  if (id.length === 0) return { field, reason: 'is empty' }
  if (id.length > portalIdLengthMax) {
    return { field, reason: `is longer than ${portalIdLengthMax} characters` }
  }
  // A slash would make `account_id/integration_id` and `notice_id/sender` ambiguous.
  return id.includes('/') ? { field, reason: 'holds a slash' } : undefined
}
