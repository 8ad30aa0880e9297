/**
 * The states that the developer portal keeps as events: accounts and notices. Only Pledgeview writes them. The projector writes them into private ledgers, and into no read table: so no e-mail address of an
 * account reaches a reader.
 *
 * As everywhere, the state with the highest version counts, whatever the order of the records. A deletion of an account is a
 * state without content. It begins a new *life* of the account, and so does a later sign-up. So what is written in one life
 * and lands later changes nothing, whatever the clocks say.
 */
import type { Long, TimestampMs } from './event.ts'
import type { Fault } from './rules.ts'

export const portalTopics = ['accounts', 'notices'] as const
export type PortalTopic = (typeof portalTopics)[number]

export const portalTypes = ['account', 'notice'] as const
export type PortalType = (typeof portalTypes)[number]

export const portalTopicOf: Readonly<Record<PortalType, PortalTopic>> = {
  account: 'accounts',
  notice: 'notices',
}

export interface AccountState {
  account_id: string
  /** Empty: the account is deleted. */
  email: string
  created_at: TimestampMs
  sessions_valid_from: TimestampMs
  changed_at: TimestampMs
  version: Long
}

export type NoticeRule = 'UNKNOWN' | 'KEY_CREATED' | 'KEY_REVOKED' | 'RUNAWAY_TRAFFIC' | 'ANNOUNCEMENT'

export type NoticeStatus = 'UNKNOWN' | 'WAITING' | 'SENT' | 'GIVEN_UP'

export interface NoticeState {
  notice_id: string
  rule: NoticeRule
  status: NoticeStatus
  account_id: string | null
  recipient: string
  subject: string
  text: string
  created_at: TimestampMs
  sent_at: TimestampMs | null
  changed_at: TimestampMs
}

export type AccountEvent = { type: 'account'; data: AccountState }

export type NoticeEvent = { type: 'notice'; data: NoticeState }

/** A state of the portal. */
export type PortalEvent = AccountEvent | NoticeEvent

/** A notice that is not needed any more. `at`: Unix ms. */
export interface RemovedNotice {
  type: 'removed-notice'
  notice_id: string
  at: TimestampMs
}

/** The most characters of an id in these topics. */
export const portalIdLengthMax = 200

const lifeFactor = 2n ** 42n

/** The largest part of a version below its life. */
export const versionPartMax = Number(lifeFactor - 1n)

/** A version: `part` is a time in Unix ms, or what the schema says. */
export function versionIn(life: bigint, part: number): bigint {
  return life * lifeFactor + BigInt(Math.min(part, versionPartMax))
}

/** The life of an account that a version belongs to. */
export function lifeOf(version: bigint): bigint {
  return version / lifeFactor
}

/** What a version has below its life. */
export function partOf(version: bigint): number {
  return Number(version % lifeFactor)
}

/** The version of a state. What is settled outranks what waits. */
export function portalVersionOf(event: PortalEvent): bigint {
  if (event.type !== 'notice') return BigInt(event.data.version)
  const { status } = event.data
  return versionIn(status === 'SENT' ? 2n : status === 'GIVEN_UP' ? 1n : 0n, 0)
}

/** The message key of an event. */
export function portalKeyOf(event: PortalEvent): string {
  switch (event.type) {
    case 'account':
      return event.data.account_id
    case 'notice':
      return event.data.notice_id
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
        numberFault('created_at', event.data.created_at) ??
        numberFault('sessions_valid_from', event.data.sessions_valid_from) ??
        numberFault('changed_at', event.data.changed_at) ??
        versionFault(event.data.version)
      )
    case 'notice':
      return (
        idFault('notice_id', event.data.notice_id) ??
        numberFault('created_at', event.data.created_at) ??
        numberFault('sent_at', event.data.sent_at ?? 0) ??
        numberFault('changed_at', event.data.changed_at)
      )
    default:
      return event satisfies never
  }
}

/** A time up to the year 2109, or a count. Damaged bytes may be any 64-bit integer. */
function numberFault(field: string, value: Long): Fault | undefined {
  return typeof value === 'number' && value >= 0 && value <= versionPartMax
    ? undefined
    : { field, reason: 'is out of range' }
}

function versionFault(version: Long): Fault | undefined {
  return version >= 0 ? undefined : { field: 'version', reason: 'is below 0' }
}

function idFault(field: string, id: string): Fault | undefined {
  if (id.length === 0) return { field, reason: 'is empty' }
  if (id.length > portalIdLengthMax) {
    return { field, reason: `is longer than ${portalIdLengthMax} characters` }
  }
  return id.includes('/') ? { field, reason: 'holds a slash' } : undefined
}
