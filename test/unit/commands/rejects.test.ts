import { describe, expect, test } from 'vitest'
import { encodeState, schemas } from '../../../contracts/events/codec.ts'
import type { ChangeEvent, StateEvent } from '../../../contracts/events/event.ts'
import { UsageError } from '../../../services/commands/command.ts'
import { readFilter, readPlace } from '../../../services/commands/rejects/rejects.ts'
import { createRetry, type RetryOutcome } from '../../../services/commands/rejects/retry.ts'
import type { Schemas } from '../../../services/commands/rejects/source.ts'
import type { Header, NewRecord, PartitionLag } from '../../../services/log/port.ts'
import { untilProjected } from '../../../services/projector/positions/until-projected.ts'
import { entityOf } from '../../../services/tables/ledger-versions.ts'
import { reasonKind } from '../../../services/tables/rejects.ts'
import type { StoredReject } from '../../../services/tables/stored-rejects.ts'
import {
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
} from '../../support/events/sample-events.ts'

const fixedIds: Schemas = {
  known: undefined,
  learn: async () => undefined,
  untilAskedAgain: async () => undefined,
}
let offset = 0

function rejectOf(record: NewRecord): StoredReject {
  const place = { partition: 0, offset: offset++, appendedAt: 0 }
  const sizes = { key: record.key?.length ?? 0, value: record.value?.length ?? 0, headers: 0 }
  const headerCount = record.headers?.length ?? 0
  return { record: { ...record, ...place }, reason: 'as it was', rejectedAt: 0, sizes, headerCount }
}

/** Retries the parts one after the other, into a log that has these versions already. */
async function retry(
  parts: StoredReject[][],
  { schemas = fixedIds, known = [] }: { schemas?: Schemas; known?: ChangeEvent[] } = {},
): Promise<{ appended: NewRecord[]; outcome: RetryOutcome }> {
  const appended: NewRecord[] = []
  const versionOf = ({ data }: ChangeEvent) => (data === null ? 2n ** 64n - 1n : BigInt(data.version))
  const versions = new Map(known.map(event => [entityOf(event), versionOf(event)]))
  const { take, outcome } = createRetry(
    { schemas, versions: async () => versions },
    { append: async records => void appended.push(...records) },
  )
  for (const part of parts) await take(part)
  return { appended, outcome }
}

const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })

describe('a retry', () => {
  test('decodes with what the registry knows by now, once it was asked, and appends all headers as they came', async () => {
    const headers = ['a b', 'c'].map((text): Header => ['trace', Buffer.from(text)])
    const value = Buffer.from(encodeState(pledge as StateEvent))
    value.writeUInt32BE(999, 1)
    let isLearned = false
    const registry: Schemas = {
      known: id => (isLearned && id === 999 ? { schema: schemas.pledge } : undefined),
      async learn() {
        isLearned = true
      },
      untilAskedAgain: async () => undefined,
    }
    const parts = () => [[rejectOf({ ...newRecordOf(pledge), value, headers })]]
    expect((await retry(parts(), { schemas: registry })).appended).toMatchObject([{ value, headers }])
    expect((await retry(parts())).appended).toEqual([])
  })

  test.each([
    ['the same version', campaignEvent({ campaign_id: 'a', version: 2 })],
    ['a newer version', campaignEvent({ campaign_id: 'a', version: 3n ** 30n })],
    ['a deletion', campaignTombstone('a')],
  ])('leaves out what the log has %s of: compaction would keep what came last', async (_, present) => {
    const event = campaignEvent({ campaign_id: 'a', version: 2 })
    const { appended, outcome } = await retry([[rejectOf(newRecordOf(event))]], { known: [present] })
    expect(appended).toEqual([])
    expect(outcome.outdated).toBe(1)
  })

  test('appends a version that is newer than the log’s, and its own older ones no more, over all parts', async () => {
    const [v1, v2, v3, v4] = [1, 2, 3, 4].map(version => campaignEvent({ campaign_id: 'a', version }))
    if (!v1 || !v2 || !v3 || !v4) throw new Error('no events')
    const parts = [[v2, v3, v2], [v1, v4], [v3]].map(part => part.map(event => rejectOf(newRecordOf(event))))
    const { appended, outcome } = await retry(parts, { known: [v1] })
    expect(appended).toEqual([newRecordOf(v3), newRecordOf(v4)])
    expect(outcome).toMatchObject({ matched: 6, retried: 2, outdated: 4 })
  })
})

describe('before a retry on Kafka', () => {
  const lag = (committed: number, end: number): PartitionLag[] => [
    { topic: 'pledges', partition: 0, committed, end },
  ]
  const lagOf = (lags: PartitionLag[][]) => async () => (lags.length > 1 ? lags.shift() : lags[0]) ?? []

  test('the projectors reach the end that the log had when it began, although the first answer is older and the log grows meanwhile', async () => {
    // The first answer was read before what waits now was appended.
    const lags = [lag(5, 5), lag(5, 10), lag(9, 50), lag(10, 90), lag(11, 99)]
    await untilProjected(lagOf(lags), { msMax: 60_000, wayOn: '' }, { sleep: async () => {} })
    expect(lags).toEqual([lag(11, 99)])
  })

  test('nothing is appended if they do not', async () => {
    const waiting = untilProjected(
      lagOf([lag(5, 10)]),
      { msMax: 5, wayOn: ': wait' },
      { sleep: async () => {} },
    )
    await expect(waiting).rejects.toThrow('5 records of the log are not projected yet: wait')
  })
})

describe('the arguments of the rejects commands', () => {
  const now = Date.UTC(2026, 10, 2, 12)

  test.each([
    ['90s', now - 90_000],
    ['15m', now - 900_000],
    ['2h', now - 7_200_000],
    ['3d', now - 3 * 86_400_000],
    ['2026-11-01', Date.UTC(2026, 10, 1)],
    ['2026-11-01T08:30Z', Date.UTC(2026, 10, 1, 8, 30)],
    ['2026-11-01T08:30:15.250Z', Date.UTC(2026, 10, 1, 8, 30, 15, 250)],
  ])('%s is a time', (text, expected) => {
    expect(readFilter({ since: text, topic: 'pledges' }, now)).toEqual({ since: expected, topic: 'pledges' })
  })

  const noTimes = ['', '2', '-2h', '2y', 'yesterday', '2026-13-01', '2026-02-30', '2026-11-01T08:30']
  test.each(noTimes)('%j is none, and the option is named', text =>
    expect(() => readFilter({ until: text }, now)).toThrow(/--until takes a time like/),
  )

  test('a place is topic, partition and offset', () => {
    expect(readPlace('api-keys/3/17')).toEqual({ topic: 'api-keys', partition: 3, offset: 17 })
    const noPlaces = [
      '',
      'pledges',
      'pledges/1',
      'pledges/1/x',
      'pledges/1/2/3',
      'orders/0/1',
      'pledges/-1/2',
    ]
    for (const text of noPlaces) expect(() => readPlace(text), text).toThrow(UsageError)
  })
})

test.each([
  ['schema id 999 is unknown for a pledge', 'schema id 999 is unknown for a pledge'],
  ['rewards[12].amount_minor -5 is negative', 'rewards[…].amount_minor … is negative'],
  ['key is not the entity\'s own ("c\\"1/p2")', "key is not the entity's own (…)"],
  ['currency "EURO" is not an ISO 4217 code', 'currency … is not an ISO … code'],
  // What is long is cut.
  ['pledged_at is not a time, but "ann@example.org lives in Long Str...', 'pledged_at is not a time, but …'],
  ['title is not text, but {"name":"ann","at":[1,2...', 'title is not text, but …'],
  ['currency "EURO and a very long text...', 'currency …'],
])('%s is of the kind %s', (reason, kind) => {
  expect(reasonKind(reason)).toBe(kind)
})
