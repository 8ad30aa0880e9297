/** Plain events. Each test changes the fields that it is about. */
import { encodeState } from '../../../contracts/events/codec.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  type PledgeState,
  type RewardState,
  type StateEvent,
  topicOf,
} from '../../../contracts/events/event.ts'
import { columns } from '../../../contracts/tables/campaign-columns.ts'
import type { NewRecord } from '../../../services/log/port.ts'

/** A public campaign with a tier and pledges, one that is not public, and an API key. */
export function smallWorld(): ChangeEvent[] {
  return [
    campaignEvent({
      campaign_id: 'a',
      rewards: [sampleReward({ reward_id: 'r', quantity_available: 5 })],
    }),
    campaignEvent({ campaign_id: 'b', status: 'DRAFT' }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'p', reward_id: 'r' }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'q' }),
    apiKeyEvent({ key: 'k', account_id: 'acc' }),
  ]
}

/** The event as a producer appends it. */
export function newRecordOf(event: ChangeEvent): NewRecord {
  return {
    topic: topicOf[event.type],
    key: Buffer.from(event.key),
    value: event.data === null ? null : encodeState(event as StateEvent),
  }
}

/** A value that no decoder accepts. */
export const noEvent: NewRecord = {
  topic: 'pledges',
  key: Buffer.from('a/p'),
  value: Buffer.from([9, 8, 7, 0, 255]),
}

export function campaignEvent(state: Partial<CampaignState> & { campaign_id: string }): ChangeEvent {
  const data = sampleCampaign(state)
  return { type: 'campaign', key: data.campaign_id, data }
}

/** The fields that were added to campaigns later, as they are where nothing is given. */
export const addedFields: object = Object.fromEntries(
  columns.filter(column => 'default' in column).map(({ name, default: given }) => [name, given]),
)

export function sampleCampaign(state: Partial<CampaignState> & { campaign_id: string }): CampaignState {
  const id = state.campaign_id
  return {
    ...addedFields,
    version: 1,
    changed_at: Date.UTC(2026, 0, 1),
    status: 'LIVE',
    // Ids may have any characters, and slugs may not.
    slug: `slug-${encodeURIComponent(id).replaceAll('%', '-')}`,
    url: `https://crowdfunding.example/projects/${encodeURIComponent(id)}`,
    title: `Title of ${id}`,
    subtitle: 'A subtitle',
    category: 'Games',
    subcategory: 'Tabletop',
    location: 'Lisbon, Portugal',
    image_url: 'https://crowdfunding.example/image.png',
    currency: 'EUR',
    goal_amount_minor: 100_000,
    campaign_type: 'ALL_OR_NOTHING',
    project_type: 'GAME',
    is_staff_pick: false,
    has_adult_content: false,
    uses_ai: false,
    tags: ['dice', 'cards'],
    follower_count: 3,
    launch_date: Date.UTC(2026, 1, 1),
    end_date: Date.UTC(2026, 2, 1),
    created_at: Date.UTC(2025, 11, 1),
    creator: {
      creator_id: 'creator-1',
      name: 'Ana',
      profile_url: 'https://crowdfunding.example/ana',
      avatar_url: null,
    },
    description: 'A description',
    risks: 'A risk',
    rewards: [],
    ...state,
  }
}

export function sampleReward(reward: Partial<RewardState> & { reward_id: string }): RewardState {
  return {
    title: `Tier ${reward.reward_id}`,
    description: 'What you get',
    amount_minor: 2_500,
    quantity_available: null,
    ...reward,
  }
}

export function pledgeEvent(
  state: Partial<PledgeState> & { campaign_id: string; pledge_id: string },
): ChangeEvent {
  const data: PledgeState = {
    backer_id: `backer of ${state.pledge_id}`,
    version: 1,
    changed_at: Date.UTC(2026, 1, 2),
    status: 'ACTIVE',
    amount_minor: 1_000,
    platform_amount_minor: 1_100,
    reward_id: null,
    ...state,
  }
  return { type: 'pledge', key: `${data.campaign_id}/${data.pledge_id}`, data }
}

export function apiKeyEvent(state: Partial<ApiKeyState> & { key: string; account_id: string }): ChangeEvent {
  const data: ApiKeyState = {
    integration: { name: 'Mirror', url: 'https://mirror.example', contact_email: 'owner@mirror.example' },
    secret_hash: 'ab'.repeat(32),
    scopes: ['read:public'],
    status: 'ACTIVE',
    version: 1,
    changed_at: Date.UTC(2026, 0, 1),
    issued_at: Date.UTC(2026, 0, 1),
    expires_at: null,
    ...state,
  }
  return { type: 'api-key', key: data.key, data }
}

export function campaignTombstone(campaignId: string): ChangeEvent {
  return { type: 'campaign', key: campaignId, data: null }
}

export function pledgeTombstone(campaignId: string, pledgeId: string): ChangeEvent {
  return { type: 'pledge', key: `${campaignId}/${pledgeId}`, data: null }
}
