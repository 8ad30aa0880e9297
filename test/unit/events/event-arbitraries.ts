/** Generated change events that keep every rule, at the edges of what the schemas allow. */
import fc from 'fast-check'
import { currencyCodes } from '../../../contracts/events/currencies.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  keyOf,
  type Long,
  type PledgeState,
  type RewardState,
  type StateEvent,
} from '../../../contracts/events/event.ts'
import { addedFields } from '../../support/events/arbitraries.ts'

const longMax = 2n ** 63n - 1n

// A bigint is used only if a number would not be exact: the codec reads it so.
const count: fc.Arbitrary<Long> = fc
  .oneof(
    fc.maxSafeNat(),
    fc.bigInt({ min: 0n, max: longMax }),
    fc.constantFrom<Long>(0, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, longMax),
  )
  .map(value => (Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value)))

const timestamp = fc
  .date({
    min: new Date('1900-01-01T00:00:00Z'),
    max: new Date('2299-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  .map(date => date.getTime())

const text = fc.string({ unit: 'binary' })
const id = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .filter(value => !value.includes('/') && value.length <= 256)
const nonEmpty = fc.string({ unit: 'binary', minLength: 1 })
const slug = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .filter(value => !/[/\\?#%\s\p{Cc}]/u.test(value) && value !== '.' && value !== '..')
const webAddress = fc.webUrl({ withFragments: true, withQueryParameters: true })

const reward: fc.Arbitrary<RewardState> = fc.record({
  reward_id: nonEmpty,
  title: text,
  description: text,
  amount_minor: count,
  quantity_available: fc.option(count),
})

export const campaignState: fc.Arbitrary<CampaignState> = fc.record({
  ...addedFields,
  campaign_id: id,
  version: count,
  changed_at: timestamp,
  status: fc.constantFrom<CampaignState['status'][]>(
    'UNKNOWN',
    'DRAFT',
    'SUBMITTED',
    'APPROVED',
    'LIVE',
    'FUNDED',
    'FAILED',
    'CANCELLED',
    'SUSPENDED',
  ),
  slug,
  url: webAddress,
  title: text,
  subtitle: fc.option(text),
  category: text,
  subcategory: fc.option(text),
  location: fc.option(text),
  image_url: fc.option(webAddress),
  currency: fc.constantFrom(...currencyCodes),
  goal_amount_minor: count,
  campaign_type: text,
  project_type: text,
  is_staff_pick: fc.boolean(),
  has_adult_content: fc.boolean(),
  uses_ai: fc.boolean(),
  tags: fc.array(text, { maxLength: 5 }),
  follower_count: count,
  launch_date: fc.option(timestamp),
  end_date: fc.option(timestamp),
  created_at: timestamp,
  creator: fc.record({
    creator_id: nonEmpty,
    name: text,
    profile_url: webAddress,
    avatar_url: fc.option(webAddress),
  }),
  description: text,
  risks: text,
  rewards: fc.uniqueArray(reward, { maxLength: 4, selector: ({ reward_id }) => reward_id }),
})

export const pledgeState: fc.Arbitrary<PledgeState> = fc.record({
  pledge_id: id,
  campaign_id: id,
  backer_id: nonEmpty,
  version: count,
  changed_at: timestamp,
  status: fc.constantFrom<PledgeState['status'][]>(
    'UNKNOWN',
    'PENDING',
    'ACTIVE',
    'COLLECTED',
    'CANCELLED',
    'REFUNDED',
    'FAILED',
  ),
  amount_minor: count,
  platform_amount_minor: count,
  reward_id: fc.option(nonEmpty),
})

export const apiKeyState: fc.Arbitrary<ApiKeyState> = fc.record({
  key: id,
  account_id: id,
  integration: fc.record({ name: text, url: webAddress, contact_email: text }),
  secret_hash: fc.stringMatching(/^[0-9a-f]{64}$/),
  scopes: fc.array(text, { maxLength: 3 }),
  status: fc.constantFrom<ApiKeyState['status'][]>('UNKNOWN', 'ACTIVE', 'REVOKED'),
  version: count,
  changed_at: timestamp,
  issued_at: fc.option(timestamp),
  expires_at: fc.option(timestamp),
})

export const stateEvent: fc.Arbitrary<StateEvent> = fc.oneof(
  campaignState.map(data => ({ type: 'campaign' as const, data })),
  pledgeState.map(data => ({ type: 'pledge' as const, data })),
  apiKeyState.map(data => ({ type: 'api-key' as const, data })),
)

const tombstone: fc.Arbitrary<ChangeEvent> = fc.oneof(
  id.map(key => ({ type: 'campaign' as const, key, data: null })),
  fc.tuple(id, id).map(([campaign, pledge]) => ({
    type: 'pledge' as const,
    key: `${campaign}/${pledge}`,
    data: null,
  })),
  id.map(key => ({ type: 'api-key' as const, key, data: null })),
)

export const changeEvent: fc.Arbitrary<ChangeEvent> = fc.oneof(
  { weight: 4, arbitrary: stateEvent.map(event => ({ ...event, key: keyOf(event) }) as ChangeEvent) },
  { weight: 1, arbitrary: tombstone },
)
