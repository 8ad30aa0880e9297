/** The checker can fail: it accepts the log of a service that keeps the promises, and each rule refuses that of one without a safeguard. */
import { expect, test } from 'vitest'
import { foldCampaignsStatement } from '../../services/projector/fold/fold-statements.ts'
import { defaultDatabases, generationOf } from '../../services/tables/generations.ts'
import { check, shortest } from './checker/check.ts'
import { goodLog, tryLogMutants } from './checker/mutants.ts'
import { slowedDown } from './faults/clickhouse-faults.ts'
import { optionOf, realMutants } from './real-mutants.ts'

test('a service that keeps every promise is accepted', () => {
  expect(check(goodLog)).toEqual([])
})

test.each(tryLogMutants())('$rule: $without', ({ rule, log }) => {
  const violation = check(log).find(one => one.rule === rule)
  if (!violation) throw new Error(`it is not found: ${JSON.stringify(check(log))}`)
  // The history that is shown still shows it.
  expect(check(shortest(log, violation)).map(one => one.rule)).toContain(rule)
})

test.each(realMutants)('the program still has what the proof takes out: $without', mutant => {
  expect(optionOf(mutant)).toContain('--import=')
})

test('the program still folds with a statement that a fault can slow down', () => {
  const term = { holder: 'leader', epoch: 1n }
  const step = { term, foldId: 1n, pieces: 1, piece: 0, msMax: 1_250, memoryBytesMax: 1 }
  const touched = { campaign: 'c1' }
  const { query } = foldCampaignsStatement(generationOf(defaultDatabases, 1), step, {
    touched,
    platformDigits: 2,
  })
  expect(slowedDown(query, 4_500)).toContain('\nWHERE sleep(4.5) = 0 AND (')
})
