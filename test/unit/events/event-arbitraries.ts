/** Generated change events that keep every rule, at the edges of what the schemas allow. */
import fc from 'fast-check'
import { currencyCodes } from '../../../contracts/events/currencies.ts'
import {
  type ChangeEvent,
  eventTypes,
  keyOf,
  type Long,
  type StateEvent,
} from '../../../contracts/events/event.ts'
import { plain, statesOf, type Values } from '../../support/events/arbitraries.ts'

const longMax = 2n ** 63n - 1n

// A bigint is used only if a number would not be exact: the codec reads it so.
const count: fc.Arbitrary<Long> = fc
  .oneof(
    fc.maxSafeNat(),
    fc.bigInt({ min: 0n, max: longMax }),
    fc.constantFrom<Long>(0, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, longMax),
  )
  .map(value => (Number.isSafeInteger(Number(value)) ? Number(value) : BigInt(value)))

const text = fc.string({ unit: 'binary' })
const id = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .filter(value => !value.includes('/') && value.length <= 256)
const nonEmpty = fc.string({ unit: 'binary', minLength: 1 })
const slug = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .filter(value => !/[/\\?#%\s\p{Cc}]/u.test(value) && value !== '.' && value !== '..')

const values: Values = {
  ...plain,
  text,
  long: count,
  fields: {
    ...plain.fields,
    ...{ campaign_id: id, pledge_id: id, key: id, account_id: id },
    ...{ backer_id: nonEmpty, creator_id: nonEmpty, reward_id: nonEmpty },
    slug,
    currency: fc.constantFrom(...currencyCodes),
    secret_hash: fc.stringMatching(/^[0-9a-f]{64}$/),
  },
}

export const stateEvent: fc.Arbitrary<StateEvent> = fc.oneof(
  ...eventTypes.map(type => statesOf(type, values).map(data => ({ type, data }) as StateEvent)),
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
