/**
 * The rules that every event keeps and that a schema cannot express. `events append` (before the log) and the
 * projector (after it) apply the same rules, so an event that was appended with it is never rejected.
 */
import { columns } from '../tables/campaign-columns.ts'
import { currencyDigits } from './currencies.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  countsTowardsTotals,
  isPublicStatus,
  keyOf,
  type Long,
  type PledgeState,
  type StateEvent,
  type TimestampMs,
} from './event.ts'

/** A broken rule: the path of the field within `data` (or `key`), and the reason. */
export interface Fault {
  field: string
  reason: string
}

export const idLengthMax = 256
export const slugLengthMax = 256
/** Reward tiers of one campaign. They all stand in one row, which every fold of the campaign computes and writes as a whole. */
export const rewardsMax = 1_000
/**
 * Characters of each text of a public campaign that lists show, and of all its tags together: a page has a hundred campaigns. Also of each
 * text of an active key, and of all its scopes together: every query process holds all keys.
 */
export const listTextLengthMax = 4_000

// The range of ClickHouse's DateTime64, which stores every timestamp.
const timestampMin = Date.UTC(1900, 0, 1)
/** The last time that a table can store. */
export const timestampMax = Date.UTC(2299, 11, 31, 23, 59, 59, 999)

/** The first rule that the event breaks, or `undefined`. Pure. */
export function faultOf(event: ChangeEvent): Fault | undefined {
  if (event.data === null) return tombstoneFault(event)
  const fault = stateFault(event)
  if (fault) return fault
  const key = keyOf(event as Parameters<typeof keyOf>[0])
  return key === event.key
    ? undefined
    : {
        field: 'key',
        reason: `is not the entity's own (${JSON.stringify(key)})`,
      }
}

/** The two ids in a pledge's key, or `undefined` if the key is not `campaign_id/pledge_id`. */
export function pledgeIdsOf(key: string): { campaign_id: string; pledge_id: string } | undefined {
  const slash = key.indexOf('/')
  const campaign_id = key.slice(0, slash)
  const pledge_id = key.slice(slash + 1)
  return slash > 0 && isId(campaign_id) && isId(pledge_id) ? { campaign_id, pledge_id } : undefined
}

function tombstoneFault(event: ChangeEvent): Fault | undefined {
  if (event.type === 'pledge') {
    if (!pledgeIdsOf(event.key)) return { field: 'key', reason: 'is not campaign_id/pledge_id' }
    return undefined
  }
  return isId(event.key) ? undefined : { field: 'key', reason: idReason(event.key) }
}

/**
 * An event may hide a campaign, take a pledge back or revoke a key, and erase its content at once. It is not rejected for that: if it were,
 * the campaign would stay public, the pledge would still count and the key would still work.
 */
function stateFault(event: ChangeEvent): Fault | undefined {
  switch (event.type) {
    case 'campaign':
      return event.data ? campaignFault(event.data) : undefined
    case 'pledge':
      return event.data ? pledgeFault(event.data) : undefined
    case 'api-key':
      return event.data ? apiKeyFault(event.data) : undefined
    default:
      return event satisfies never
  }
}

/** Whether the state hides a campaign, takes a pledge back or revokes a key. Its status may be one that no schema knows. */
export function withdraws({ type, data }: StateEvent): boolean {
  switch (type) {
    case 'campaign':
      return !isPublicStatus(data.status)
    case 'pledge':
      return !countsTowardsTotals(data.status)
    case 'api-key':
      return data.status !== 'ACTIVE'
    default:
      return type satisfies never
  }
}

function pledgeFault(pledge: PledgeState): Fault | undefined {
  return (
    idFault('pledge_id', pledge.pledge_id) ??
    idFault('campaign_id', pledge.campaign_id) ??
    countFault('version', pledge.version) ??
    timestampFault('changed_at', pledge.changed_at) ??
    (countsTowardsTotals(pledge.status) ? countedFault(pledge) : undefined)
  )
}

function countedFault(pledge: PledgeState): Fault | undefined {
  return (
    (pledge.backer_id === '' ? { field: 'backer_id', reason: 'is empty' } : undefined) ??
    countFault('amount_minor', pledge.amount_minor) ??
    countFault('platform_amount_minor', pledge.platform_amount_minor) ??
    (pledge.reward_id === ''
      ? { field: 'reward_id', reason: 'is empty (null means no reward)' }
      : undefined) ??
    lengthFault('reward_id', pledge.reward_id ?? '', idLengthMax)
  )
}

function campaignFault(campaign: CampaignState): Fault | undefined {
  return (
    idFault('campaign_id', campaign.campaign_id) ??
    countFault('version', campaign.version) ??
    timestampFault('changed_at', campaign.changed_at) ??
    (isPublicStatus(campaign.status) ? publicFault(campaign) : undefined)
  )
}

function publicFault(campaign: CampaignState): Fault | undefined {
  return (
    (currencyDigits(campaign.currency) === undefined
      ? {
          field: 'currency',
          reason: `${JSON.stringify(campaign.currency)} is not an ISO 4217 code`,
        }
      : undefined) ??
    countFault('goal_amount_minor', campaign.goal_amount_minor) ??
    countFault('follower_count', campaign.follower_count) ??
    timestampFault('launch_date', campaign.launch_date) ??
    timestampFault('end_date', campaign.end_date) ??
    timestampFault('created_at', campaign.created_at) ??
    partIdFault('creator.creator_id', campaign.creator.creator_id) ??
    shownFault(campaign) ??
    rewardsFault(campaign)
  )
}

// What lists show as text, and every web address, as paths in the event.
const checkedTexts = columns
  .filter(({ from, shown, type, format }) => {
    return from === 'ledger' && type.includes('String') && (shown === 'list' || format === 'uri')
  })
  .map(({ name, event = name, format }) => ({
    field: event,
    path: event.split('.'),
    isLink: format === 'uri',
  }))

/** The slug, the web addresses and the lengths of texts. */
function shownFault(campaign: CampaignState): Fault | undefined {
  const fault = slugFault(campaign.slug)
  if (fault) return fault
  for (const { field, path, isLink } of checkedTexts) {
    const value = path.reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], campaign)
    const text = Array.isArray(value) ? value.join(',') : ((value as string | null | undefined) ?? null)
    const wrong = lengthFault(field, text ?? '') ?? (isLink ? webAddressFault(field, text) : undefined)
    if (wrong) return wrong
  }
  return undefined
}

function lengthFault(field: string, text: string, max = listTextLengthMax): Fault | undefined {
  return text.length <= max ? undefined : { field, reason: `is longer than ${max} characters` }
}

function slugFault(slug: string): Fault | undefined {
  const reason = slugReason(slug)
  return reason === undefined ? undefined : { field: 'slug', reason }
}

function slugReason(slug: string): string | undefined {
  if (slug === '') return 'is empty, and the campaign is public'
  if (slug.length > slugLengthMax) return `is longer than ${slugLengthMax} characters`
  if (slug === '.' || slug === '..') return `${JSON.stringify(slug)} is a relative path`
  // A browser reads a backslash in a path as a slash.
  const [found] = /[/\\?#%\s\p{Cc}]/u.exec(slug) ?? []
  return found === undefined ? undefined : `has ${JSON.stringify(found)}, which a path segment cannot have`
}

function webAddressFault(field: string, url: string | null): Fault | undefined {
  // A URL parser skips blanks and control characters, so they are refused first.
  if (url === null || (/^https?:\/\/[^\s\p{Cc}]+$/iu.test(url) && URL.canParse(url))) return undefined
  return { field, reason: 'is not a web address with http:// or https://' }
}

function rewardsFault({ rewards }: CampaignState): Fault | undefined {
  if (rewards.length > rewardsMax) {
    return { field: 'rewards', reason: `has ${rewards.length} tiers, more than ${rewardsMax}` }
  }
  const seen = new Set<string>()
  for (const [index, reward] of rewards.entries()) {
    const at = `rewards[${index}]`
    if (seen.has(reward.reward_id)) {
      return {
        field: `${at}.reward_id`,
        reason: `${JSON.stringify(reward.reward_id)} stands twice`,
      }
    }
    seen.add(reward.reward_id)
    const fault =
      partIdFault(`${at}.reward_id`, reward.reward_id) ??
      countFault(`${at}.amount_minor`, reward.amount_minor) ??
      (reward.quantity_available === null
        ? undefined
        : countFault(`${at}.quantity_available`, reward.quantity_available))
    if (fault) return fault
  }
  return undefined
}

function apiKeyFault(apiKey: ApiKeyState): Fault | undefined {
  return (
    idFault('key', apiKey.key) ??
    idFault('account_id', apiKey.account_id) ??
    (apiKey.status === 'ACTIVE' ? admittedFault(apiKey) : undefined) ??
    countFault('version', apiKey.version) ??
    timestampFault('changed_at', apiKey.changed_at) ??
    timestampFault('issued_at', apiKey.issued_at) ??
    timestampFault('expires_at', apiKey.expires_at)
  )
}

function admittedFault({ integration, secret_hash, scopes }: ApiKeyState): Fault | undefined {
  const { name, url, contact_email } = integration
  const isHash = /^[0-9a-f]{64}$/.test(secret_hash)
  const fault = { field: 'secret_hash', reason: 'is not 64 lower-case hex digits' }
  return (
    lengthFault('integration.name', name) ??
    lengthFault('integration.url', url) ??
    lengthFault('integration.contact_email', contact_email) ??
    lengthFault('scopes', scopes.join(',')) ??
    webAddressFault('integration.url', url) ??
    (isHash ? undefined : fault)
  )
}

/** What is wrong with an id that is a key, or part of one. */
export function idFault(field: string, id: string): Fault | undefined {
  return isId(id) ? undefined : { field, reason: idReason(id) }
}

/** An id that is part of no key. One fold holds those of all pledges of a campaign. */
function partIdFault(field: string, id: string): Fault | undefined {
  return id === '' ? { field, reason: 'is empty' } : lengthFault(field, id, idLengthMax)
}

// A slash would make `campaign_id/pledge_id` ambiguous, and a tombstone has only its key.
function isId(id: string): boolean {
  return id.length > 0 && id.length <= idLengthMax && !id.includes('/')
}

function idReason(id: string): string {
  if (id.length === 0) return 'is empty'
  return id.length > idLengthMax ? `is longer than ${idLengthMax} characters` : 'holds a slash'
}

function countFault(field: string, value: Long): Fault | undefined {
  return value >= 0 ? undefined : { field, reason: `${value} is negative` }
}

function timestampFault(field: string, value: TimestampMs | null): Fault | undefined {
  if (value === null || (value >= timestampMin && value <= timestampMax)) return undefined
  return { field, reason: `${value} ms is outside the years 1900 to 2299` }
}
