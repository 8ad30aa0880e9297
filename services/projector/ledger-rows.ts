/**
 * Ledger rows: what of an event is kept. Pure.
 *
 * This is where private things end: a campaign that is not public becomes its id, its version and nothing else, a
 * backer becomes a keyed hash, a pledge that does not count loses even that.
 */
import { hash } from 'node:crypto'
import { currencyDigits } from '../../contracts/events/currencies.ts'
import {
  type ApiKeyState,
  type CampaignState,
  countsTowardsTotals,
  isPublicStatus,
  type PledgeState,
  type RewardState,
  type TimestampMs,
} from '../../contracts/events/event.ts'
import { pledgeIdsOf } from '../../contracts/events/rules.ts'

/** Ranks after every version that an event can have (those are signed 64-bit). */
export const tombstoneVersion = '18446744073709551615'

export const campaignColumns = [
  'campaign_id',
  'version',
  'is_public',
  'status',
  'slug',
  'url',
  'title',
  'subtitle',
  'category',
  'subcategory',
  'location',
  'image_url',
  'currency',
  'currency_digits',
  'goal_amount_minor',
  'campaign_type',
  'project_type',
  'is_staff_pick',
  'has_adult_content',
  'uses_ai',
  'tags',
  'follower_count',
  'launch_date',
  'end_date',
  'created_at',
  'creator_id',
  'creator_name',
  'creator_profile_url',
  'creator_avatar_url',
  'description',
  'risks',
  'rewards',
] as const

export const pledgeColumns = [
  'campaign_id',
  'pledge_id',
  'version',
  'counts',
  'backer_hash',
  'amount_minor',
  'platform_amount_minor',
  'reward_id',
] as const

export const apiKeyColumns = [
  'api_key',
  'version',
  'is_unrevoked',
  'account_id',
  'integration_name',
  'integration_url',
  'integration_contact_email',
  'secret_hash',
  'scopes',
  'issued_at',
] as const

/** One JSONCompactEachRow line. `campaign` null: a tombstone of `campaignId`. */
export function campaignRow(campaignId: string, campaign: CampaignState | null): string {
  if (campaign === null || !isPublicStatus(campaign.status)) {
    const version = campaign === null ? tombstoneVersion : String(campaign.version)
    return JSON.stringify([campaignId, version, false, ...hiddenCampaignTail])
  }
  const { creator } = campaign
  return JSON.stringify([
    campaignId,
    String(campaign.version),
    true,
    campaign.status,
    campaign.slug,
    campaign.url,
    campaign.title,
    campaign.subtitle,
    campaign.category,
    campaign.subcategory,
    campaign.location,
    campaign.image_url,
    campaign.currency,
    currencyDigits(campaign.currency),
    String(campaign.goal_amount_minor),
    campaign.campaign_type,
    campaign.project_type,
    campaign.is_staff_pick,
    campaign.has_adult_content,
    campaign.uses_ai,
    campaign.tags,
    String(campaign.follower_count),
    dateTime(campaign.launch_date),
    dateTime(campaign.end_date),
    dateTime(campaign.created_at),
    creator.creator_id,
    creator.name,
    creator.profile_url,
    creator.avatar_url,
    campaign.description,
    campaign.risks,
    campaign.rewards.map(rewardTuple),
  ])
}

/** One TSV line, with its newline. Throws on a key that `faultOf` would have refused. */
export function pledgeRow(
  key: string,
  pledge: PledgeState | null,
  hashBacker: (id: string) => string,
): string {
  if (pledge === null) {
    const ids = pledgeIdsOf(key)
    if (!ids) throw new TypeError(`not a pledge's key: ${key}`)
    return `${tsv(ids.campaign_id)}\t${tsv(ids.pledge_id)}\t${tombstoneVersion}\t0\t0\t0\t0\t\n`
  }
  const head = `${tsv(pledge.campaign_id)}\t${tsv(pledge.pledge_id)}\t${pledge.version}`
  if (!countsTowardsTotals(pledge.status)) return `${head}\t0\t0\t0\t0\t\n`
  const reward = pledge.reward_id === null ? '' : tsv(pledge.reward_id)
  return `${head}\t1\t${hashBacker(pledge.backer_id)}\t${pledge.amount_minor}\t${pledge.platform_amount_minor}\t${reward}\n`
}

/** One JSONCompactEachRow line. A deleted key keeps no address and no hash. */
export function apiKeyRow(key: string, apiKey: ApiKeyState | null): string {
  if (apiKey === null)
    return JSON.stringify([key, tombstoneVersion, false, '', '', '', '', '', [], dateTime(0)])
  const { integration } = apiKey
  return JSON.stringify([
    key,
    String(apiKey.version),
    apiKey.status === 'ACTIVE',
    apiKey.account_id,
    integration.name,
    integration.url,
    integration.contact_email,
    apiKey.secret_hash,
    apiKey.scopes,
    dateTime(apiKey.issued_at ?? apiKey.changed_at),
  ])
}

/**
 * The keyed hash of a backer id, as the digits of an unsigned 64-bit integer: it counts backers and names none.
 *
 * SHA3-256 over key and id, cut to 64 bits. SHA-3 is made to be keyed by a prefix (nothing can be appended to its
 * result, as could be with SHA-256), and in one call it costs a third of an HMAC. `key`: 64 hex digits.
 */
export function backerHasher(key: string): (backerId: string) => string {
  return backerId => BigInt(`0x${hash('sha3-256', key + backerId, 'hex').slice(0, 16)}`).toString()
}

const hiddenCampaignTail = [
  '', // status
  ...['', '', '', null, '', null, null, null, '', 0, '0', '', ''], // slug to project_type
  ...[false, false, false, [], '0', null, null, '1970-01-01 00:00:00.000'], // is_staff_pick to created_at
  ...['', '', '', null, '', '', []], // creator_id to rewards
]

function rewardTuple(reward: RewardState): object {
  const { quantity_available: available } = reward
  return {
    reward_id: reward.reward_id,
    title: reward.title,
    description: reward.description,
    amount_minor: String(reward.amount_minor),
    quantity_available: available === null ? null : String(available),
  }
}

function dateTime(ms: TimestampMs | null): string | null {
  return ms === null ? null : new Date(ms).toISOString().replace('T', ' ').replace('Z', '')
}

const tsvSpecials = /[\\\t\n\r\b\f\0]/

// Ids are nearly always plain, and this runs for every pledge: look first, replace only then.
function tsv(text: string): string {
  return tsvSpecials.test(text) ? text.replace(/[\\\t\n\r\b\f\0]/g, escapeTsv) : text
}

function escapeTsv(character: string): string {
  switch (character) {
    case '\\':
      return '\\\\'
    case '\t':
      return '\\t'
    case '\n':
      return '\\n'
    case '\r':
      return '\\r'
    case '\b':
      return '\\b'
    case '\f':
      return '\\f'
    default:
      return '\\0'
  }
}
