/**
 * The change events, as they are between the wire and the ledger.
 *
 * An event carries an entity's whole current state, or `null` for a tombstone (deleted for good). The Avro schemas
 * beside this file define the meaning and unit of each field. This file has their shape in TypeScript.
 */

import type { CopiedFields, CreatorFields } from '../tables/campaign-columns.ts'

/** A 64-bit integer: a `number` if that is exact, otherwise a `bigint`. Both print as the same digits. */
export type Long = number | bigint

/** Milliseconds since the Unix epoch. */
export type TimestampMs = number

/** The topics of the change events, which the platform and `keys issue` write. */
export const changeTopics = ['campaigns', 'pledges', 'api-keys'] as const
export type ChangeTopic = (typeof changeTopics)[number]

/** All topics of the event log. The last two are the portal's own (portal-event.ts). */
export const topics = [...changeTopics, 'accounts', 'notices'] as const
export type Topic = (typeof topics)[number]

/** Whether the topic has change events. */
export function isChangeTopic(topic: Topic): topic is ChangeTopic {
  return topic !== 'accounts' && topic !== 'notices'
}

export const eventTypes = ['campaign', 'pledge', 'api-key'] as const
export type EventType = (typeof eventTypes)[number]

export const topicOf: Readonly<Record<EventType, ChangeTopic>> = {
  campaign: 'campaigns',
  pledge: 'pledges',
  'api-key': 'api-keys',
}

export const eventTypeOf: Readonly<Record<ChangeTopic, EventType>> = {
  campaigns: 'campaign',
  pledges: 'pledge',
  'api-keys': 'api-key',
}

export type CampaignStatus =
  | 'UNKNOWN'
  | 'DRAFT'
  | 'SUBMITTED'
  | 'APPROVED'
  | 'LIVE'
  | 'FUNDED'
  | 'FAILED'
  | 'CANCELLED'
  | 'SUSPENDED'

/** A campaign of another status is not shown to an anonymous visitor of the platform. */
export const publicStatuses = [
  'LIVE',
  'FUNDED',
  'FAILED',
  'CANCELLED',
] as const satisfies readonly CampaignStatus[]
export type PublicStatus = (typeof publicStatuses)[number]

export interface RewardState {
  reward_id: string
  title: string
  description: string
  amount_minor: Long
  quantity_available: Long | null
}

/** What the ledger has under the same name comes from the list of a campaign's fields. */
export interface CampaignState extends CopiedFields {
  campaign_id: string
  version: Long
  changed_at: TimestampMs
  status: CampaignStatus
  goal_amount_minor: Long
  follower_count: Long
  creator: { creator_id: string } & CreatorFields
  rewards: RewardState[]
}

export type PledgeStatus =
  | 'UNKNOWN'
  | 'PENDING'
  | 'ACTIVE'
  | 'COLLECTED'
  | 'CANCELLED'
  | 'REFUNDED'
  | 'FAILED'

export interface PledgeState {
  pledge_id: string
  campaign_id: string
  backer_id: string
  version: Long
  changed_at: TimestampMs
  status: PledgeStatus
  amount_minor: Long
  platform_amount_minor: Long
  reward_id: string | null
}

export type ApiKeyStatus = 'UNKNOWN' | 'ACTIVE' | 'REVOKED'

export interface ApiKeyState {
  key: string
  account_id: string
  integration: { name: string; url: string; contact_email: string }
  secret_hash: string
  scopes: string[]
  status: ApiKeyStatus
  version: Long
  changed_at: TimestampMs
  issued_at: TimestampMs | null
  expires_at: TimestampMs | null
}

/** One change event. `key` is the message key. If `data` is null it is a tombstone, which ranks after every version. */
export type ChangeEvent =
  | { type: 'campaign'; key: string; data: CampaignState | null }
  | { type: 'pledge'; key: string; data: PledgeState | null }
  | { type: 'api-key'; key: string; data: ApiKeyState | null }

/** A change event that is not a tombstone, before it has its key. */
export type StateEvent =
  | { type: 'campaign'; data: CampaignState }
  | { type: 'pledge'; data: PledgeState }
  | { type: 'api-key'; data: ApiKeyState }

export function isPublicStatus(status: CampaignStatus): status is PublicStatus {
  return (publicStatuses as readonly CampaignStatus[]).includes(status)
}

/** Whether a pledge of this status is part of a campaign's totals. */
export function countsTowardsTotals(status: PledgeStatus): boolean {
  switch (status) {
    case 'ACTIVE':
    case 'COLLECTED':
      return true
    case 'UNKNOWN':
    case 'PENDING':
    case 'CANCELLED':
    case 'REFUNDED':
    case 'FAILED':
      return false
    default:
      // JSON may have a status that no schema knows.
      status satisfies never
      return false
  }
}

/** The message key of an event that carries a state. */
export function keyOf(event: StateEvent): string {
  switch (event.type) {
    case 'campaign':
      return event.data.campaign_id
    case 'pledge':
      return `${event.data.campaign_id}/${event.data.pledge_id}`
    case 'api-key':
      return event.data.key
    default:
      return event satisfies never
  }
}
