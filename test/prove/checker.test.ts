/** The checker can fail: it accepts the log of a service that keeps the promises, and each rule refuses that of one without a safeguard. */
import { expect, test } from 'vitest'
import { check, shortest } from './checker/check.ts'
import { goodLog, tryLogMutants } from './checker/mutants.ts'
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
