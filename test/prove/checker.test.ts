/** The checker can fail: it accepts the log of a service that keeps the promises, and each rule refuses that of one without a safeguard. */
import { expect, test } from 'vitest'
import { foldCampaignsStatement } from '../../services/projector/fold/fold-statements.ts'
import { defaultDatabases, generationOf } from '../../services/tables/generation-log.ts'
import { check } from './checker/check.ts'
import { goodLog, tryLogMutants } from './checker/mutants.ts'
import { slowedDown } from './faults/clickhouse-faults.ts'
import { lossesOf, shownMax } from './report.ts'

test('a service that keeps every promise is accepted', () => {
  expect(check(goodLog)).toEqual([])
})

test.each(tryLogMutants())('$rule: $without', ({ rule, log }) => {
  expect(check(log).map(one => one.rule)).toContain(rule)
})

test('all losses of a world are counted, and the first are shown', () => {
  const violations = tryLogMutants().flatMap(({ log }) => check(log))
  const outcome = {
    plan: { seed: 's', faults: [] },
    log: [],
    played: [],
    failure: 'broke off',
    counts: {},
    seconds: 1,
  }
  const failures = ['simulated 7: it did not end']
  const proof = { simulated: [], failures, worlds: [{ ...outcome, violations }] }
  expect(lossesOf(proof)).toHaveLength(violations.length + 2)
  expect(lossesOf(proof, shownMax)).toHaveLength(shownMax + 2)
})

test('the program still folds with a statement that a fault can slow down', () => {
  const term = { holder: 'leader', epoch: 1n }
  const step = { term, foldId: 1n, pieces: 1, piece: 0, msMax: 1_250, memoryBytesMax: 1, platformDigits: 2 }
  const databases = generationOf(defaultDatabases, 1)
  const { query } = foldCampaignsStatement(databases, step, { campaign: 'c1' })
  expect(slowedDown(query, 4_500)).toContain('\nWHERE sleep(4.5) = 0 AND (')
})
