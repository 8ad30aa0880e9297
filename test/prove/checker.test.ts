/** The checker can fail: each rule accepts the log of a service that keeps the promise, and refuses that of one without a safeguard. */
import { expect, test } from 'vitest'
import { check, shortest } from './checker/check.ts'
import { logsOf, mutants } from './checker/mutants.ts'

test.each(mutants)('%s: %s', (rule, without, write) => {
  const { good, bad } = logsOf([rule, without, write])
  expect(check(good)).toEqual([])
  const violation = check(bad).find(one => one.rule === rule)
  if (!violation) throw new Error(`it is not found: ${JSON.stringify(check(bad))}`)
  // The history that is shown still shows it.
  expect(check(shortest(bad, violation)).map(one => one.rule)).toContain(rule)
})
