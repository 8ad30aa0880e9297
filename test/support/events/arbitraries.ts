/**
 * fast-check arbitraries of states, by their Avro schemas, and of small worlds: a few campaigns, pledges and backers, with several versions
 * each, and all difficult cases. Versions of one entity are distinct, so equal versions always carry equal content.
 */
import fc from 'fast-check'
import { schemas } from '../../../contracts/events/codec.ts'
import type {
  CampaignState,
  CampaignStatus,
  ChangeEvent,
  EventType,
  Long,
  PledgeState,
  PledgeStatus,
  TimestampMs,
} from '../../../contracts/events/event.ts'
import { columns } from '../../../contracts/tables/campaign-columns.ts'

/** The arbitraries of the values of a state: by their Avro type, and by the names of the fields that are narrower. */
export interface Values {
  text: fc.Arbitrary<string>
  long: fc.Arbitrary<Long>
  timestamp: fc.Arbitrary<TimestampMs>
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>
}

type Schema =
  | 'string'
  | 'long'
  | 'boolean'
  | ['null', Schema]
  | { type: 'long'; logicalType: 'timestamp-millis' }
  | { type: 'enum'; symbols: readonly string[] }
  | { type: 'array'; items: Schema }
  | RecordSchema

interface RecordSchema {
  type: 'record'
  fields: readonly { name: string; type: Schema }[]
}

/** The states that the Avro schema of an event type has. */
export function statesOf<S>(type: EventType, values: Values): fc.Arbitrary<S> {
  return valuesOf(schemas[type] as unknown as RecordSchema, values) as fc.Arbitrary<S>
}

function valuesOf(schema: Schema, values: Values, narrow?: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  if (Array.isArray(schema)) return fc.option(valuesOf(schema[1], values, narrow))
  if (narrow) return narrow
  if (schema === 'string') return values.text
  if (schema === 'long') return values.long
  if (schema === 'boolean') return fc.boolean()
  switch (schema.type) {
    case 'long':
      return values.timestamp
    case 'enum':
      return fc.constantFrom(...schema.symbols)
    case 'array':
      return listsOf(schema.items, values)
    case 'record':
      return fc.record(
        Object.fromEntries(
          schema.fields.map(({ name, type }) => [name, valuesOf(type, values, values.fields[name])]),
        ),
      )
    default:
      return schema satisfies never
  }
}

/** No two records of a list have the same id, which is their first field. */
function listsOf(items: Schema, values: Values): fc.Arbitrary<unknown[]> {
  const item = valuesOf(items, values)
  if (typeof items === 'string' || !('fields' in items)) return fc.array(item, { maxLength: 4 })
  const id = items.fields[0]?.name ?? ''
  return fc.uniqueArray(item, { maxLength: 4, selector: one => (one as Record<string, unknown>)[id] })
}

const campaignStatuses: readonly CampaignStatus[] = [
  // The public statuses are listed twice, because without public campaigns there is little to compare.
  ...(['LIVE', 'FUNDED', 'FAILED', 'CANCELLED', 'LIVE', 'FUNDED', 'FAILED', 'CANCELLED'] as const),
  ...(['UNKNOWN', 'DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED'] as const),
]

const pledgeStatuses: readonly PledgeStatus[] = [
  ...(['ACTIVE', 'COLLECTED', 'ACTIVE', 'COLLECTED'] as const),
  ...(['UNKNOWN', 'PENDING', 'CANCELLED', 'REFUNDED', 'FAILED'] as const),
]

const campaignIds = ['c1', 'c2', 'c3', 'c-4:ü\t\\N\0']
const pledgeIds = ['p1', 'p2', 'p3', 'p4', 'p5', 'p 6 "quoted"\t\\N\0']
const backerIds = ['b1', 'b2', 'b3', 'b4']
const creatorIds = ['k1', 'k2', 'k3']
const rewardIds = ['r1', 'r2', 'r3\t\\N\0']
const categories = ['Comics', 'Film & Video', 'Games']
// Two, none, three and four digits after the decimal point.
const currencies = ['USD', 'EUR', 'JPY', 'KWD', 'CLF']

// Of each campaign, and of each of its pledges.
const versionsMax = 4

/**
 * The events of a small world, in the order in which they happened. Every event obeys `contracts/events/rules.ts`. Some
 * entities end in a tombstone, and some pledges belong to campaigns that are never public. `pledgesMax`: per campaign.
 */
export function worldEvents({ campaignsMax = 4, pledgesMax = 6 } = {}): fc.Arbitrary<ChangeEvent[]> {
  const campaignWithPledges = (id: string): fc.Arbitrary<ChangeEvent[]> =>
    fc
      .tuple(
        fc.option(eventsOf('campaign', id, campaignState(id)), { nil: [], freq: 12 }),
        fc
          .subarray(pledgeIds.slice(0, pledgesMax))
          .chain(ids =>
            fc.tuple(...ids.map(pledge => eventsOf('pledge', `${id}/${pledge}`, pledgeState(id, pledge)))),
          ),
      )
      .map(([own, pledges]) => [...own, ...pledges.flat()])
  return fc
    .subarray(campaignIds.slice(0, campaignsMax), { minLength: 1 })
    .chain(ids => fc.tuple(...ids.map(campaignWithPledges)))
    .map(campaigns => campaigns.flat())
}

/** The same world as another reader may receive it: in any order, with duplicates, and with stale versions. */
export function shuffledWithNoise(events: readonly ChangeEvent[]): fc.Arbitrary<ChangeEvent[]> {
  const noise = fc
    .subarray([...events, ...events.flatMap(event => staleOf(event, events))])
    .map(more => [...events, ...more])
  return noise.chain(all => fc.shuffledSubarray(all, { minLength: all.length }))
}

/** A version of the entity that is older than all others in the world, with other content; one for each entity. */
function staleOf(event: ChangeEvent, events: readonly ChangeEvent[]): ChangeEvent[] {
  const states = events.filter(
    other => other.type === event.type && other.key === event.key && other.data !== null,
  )
  if (states[0] !== event || states.some(({ data }) => data && data.version <= staleVersion)) return []
  const other =
    event.type === 'campaign' ? { title: 'stale', status: 'LIVE' } : { amount_minor: 1, status: 'ACTIVE' }
  return [{ ...event, data: { ...event.data, ...other, version: staleVersion } } as ChangeEvent]
}

const staleVersion = 0
const longMax = 2n ** 63n - 1n
const timestampMin = Date.UTC(1900, 0, 1)
const timestampMax = Date.UTC(2299, 11, 31, 23, 59, 59, 999)

/** Values that keep the rules of most fields. */
export const plain: Values = {
  text: text(),
  long: amount(),
  timestamp: timestamp(),
  fields: Object.fromEntries(
    columns
      .filter(({ format }) => format === 'uri')
      .map(({ name, event = name }) => [event.split('.').at(-1), webAddress()]),
  ),
}

/** One to `versionsMax` states with growing versions. A few end in a tombstone. */
function eventsOf<S extends { version: Long }>(
  type: 'campaign' | 'pledge',
  key: string,
  state: fc.Arbitrary<S>,
): fc.Arbitrary<ChangeEvent[]> {
  return fc
    .tuple(
      fc.uniqueArray(version(), { minLength: 1, maxLength: versionsMax, selector: String }),
      fc.array(state, { minLength: versionsMax, maxLength: versionsMax }),
      fc.nat(7),
    )
    .map(([versions, contents, chance]) => {
      const growing = versions.toSorted((a, b) => (a < b ? -1 : 1))
      const states = growing.map((value, n) => ({ ...contents[n], version: value }))
      const all = chance === 0 ? [...states, null] : states
      return all.map(data => ({ type, key, data }) as ChangeEvent)
    })
}

function campaignState(campaign_id: string): fc.Arbitrary<CampaignState> {
  return statesOf('campaign', {
    ...plain,
    fields: {
      ...plain.fields,
      campaign_id: fc.constant(campaign_id),
      status: fc.constantFrom(...campaignStatuses),
      // A slug may change, and belongs to one campaign.
      slug: fc.constantFrom('a', 'b').map(end => `s${campaignIds.indexOf(campaign_id)}-${end}`),
      category: fc.constantFrom(...categories),
      currency: fc.constantFrom(...currencies),
      creator_id: fc.constantFrom(...creatorIds),
      reward_id: fc.constantFrom(...rewardIds),
      // Small numbers, so that some tiers are sold out and even oversold.
      quantity_available: fc.oneof({ weight: 8, arbitrary: fc.nat(2) }, fc.constant(longMax)),
    },
  })
}

function pledgeState(campaign_id: string, pledge_id: string): fc.Arbitrary<PledgeState> {
  return statesOf('pledge', {
    ...plain,
    fields: {
      ...plain.fields,
      pledge_id: fc.constant(pledge_id),
      campaign_id: fc.constant(campaign_id),
      backer_id: fc.constantFrom(...backerIds),
      status: fc.constantFrom(...pledgeStatuses),
      reward_id: fc.constantFrom(...rewardIds, 'a tier that is gone'),
    },
  })
}

/** A counter, microseconds, or more than a double can hold. Numbers that a double holds exactly are numbers, as on the wire. */
function version(): fc.Arbitrary<Long> {
  return fc.oneof(
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 1_790_000_000_000_000, max: 1_790_000_000_000_020 }),
    fc.bigInt({ min: longMax - 9n, max: longMax }),
    fc.constantFrom(2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n),
  )
}

/** Up to 10^15, so that sums of a small world stay within 63 bits and single amounts exceed 32. */
function amount(): fc.Arbitrary<number> {
  return fc.oneof(
    fc.nat(500),
    fc.maxSafeNat().map(value => value % 10 ** 15),
  )
}

function timestamp(): fc.Arbitrary<TimestampMs> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2030, 0, 1) }) },
    { weight: 1, arbitrary: fc.constantFrom(timestampMin, 0, timestampMax) },
  )
}

/** Text, including text that is difficult for text formats. */
function webAddress(): fc.Arbitrary<string> {
  return text().map(path => `https://crowdfunding.example/${path.replace(/[\s\p{Cc}]/gu, '_')}`)
}

function text(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    fc.constantFrom(
      '',
      'tab\there',
      'line\nbreak',
      'carriage\rreturn',
      'back\\slash',
      '\\N',
      'NULL',
      `'"\``,
      '\u0000',
      '{a:String}',
      '👩‍🚀 Åå',
    ),
  )
}
