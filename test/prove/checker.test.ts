/** The checker can fail: each rule accepts the log of a service that keeps the promise, and refuses that of one without a safeguard. */
import { expect, test } from 'vitest'
import { check, shortest } from './checker/check.ts'
import { tryLogMutants } from './checker/mutants.ts'
import { optionOf, realMutants } from './real-mutants.ts'

test.each(tryLogMutants())('$rule: $without', ({ rule, good, bad }) => {
  expect(check(good)).toEqual([])
  const violation = check(bad).find(one => one.rule === rule)
  if (!violation) throw new Error(`it is not found: ${JSON.stringify(check(bad))}`)
  // The history that is shown still shows it.
  expect(check(shortest(bad, violation)).map(one => one.rule)).toContain(rule)
})

test.each(realMutants)('the program still has what the proof takes out: $without', mutant => {
  expect(optionOf(mutant)).toContain('--import=')
})
