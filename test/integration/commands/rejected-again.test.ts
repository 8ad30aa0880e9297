import { expect, test } from 'vitest'
import { settle } from '../../../services/commands/rejects/settle.ts'
import type { RejectSource } from '../../../services/commands/rejects/source.ts'
import { newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { startedAt, storeAt, type TimedReject } from '../../support/projector/reject-filters.ts'
import { useFreshModel } from '../../support/projector/use-model-tables.ts'

const model = useFreshModel()
const since = startedAt + 60_000

/** One reject for each of these keys, which have the greatest length. Together they are longer than ClickHouse lets a parameter be. */
function rejects(offset: number, rejectedAt: number, reasonOf: (n: number) => string): TimedReject[] {
  return Array.from({ length: 300 }, (_, n) => {
    const pledge = pledgeEvent({ campaign_id: `${n}`.padEnd(256, '-'), pledge_id: 'p'.repeat(256) })
    const place = { partition: 0, offset: offset + n, appendedAt: 1_000 }
    return { record: { ...newRecordOf(pledge), ...place }, reason: reasonOf(n), rejectedAt }
  })
}

test('a retry counts why events were rejected again, also if their keys are longer together than a parameter may be', async () => {
  const { tables, databases } = model
  // Each stands there twice, and was rejected once since then.
  await storeAt(tables, databases, [
    ...[0, 300].flatMap(offset => rejects(offset, startedAt, () => 'schema id 2 is unknown')),
    ...rejects(600, since, n => (n % 3 === 0 ? 'slug is empty' : 'amount_minor -5 is negative')),
  ])
  const source: RejectSource = {
    ...{ tables, databases },
    schemas: { known: undefined, learn: async () => {}, untilAskedAgain: async () => {} },
    openTarget: () => Promise.reject(new Error('nothing is appended')),
    versions: async () => new Map(),
  }
  // All of them are read in one part.
  const places = rejects(0, startedAt, () => '').flatMap(({ record }, n) =>
    n < 200 ? [record, { ...record, offset: record.offset + 300 }] : [],
  )
  expect(await settle(source, { places }, since)).toEqual({
    settled: 0,
    not_settled: 400,
    rejected_again: [
      { reason: 'amount_minor … is negative', count: 133, example: expect.any(String) },
      { reason: 'slug is empty', count: 67, example: expect.any(String) },
    ],
  })
})
