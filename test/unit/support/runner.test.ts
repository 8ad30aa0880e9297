/** What runs the suites: it must not hide a suite, a failure, or a program that hangs. */
import { expect, it } from 'vitest'
import type { TestModule } from 'vitest/node'
import { checkSuites } from '../../support/runner/longest-first.ts'
import { needs } from '../../support/runner/requirements.ts'
import { outcomeOf } from '../../support/runner/summary-reporter.ts'

it('counts a skipped test as optional only if its requirement is', () => {
  const tests = [true, false].map(isOptional => {
    const meta = {}
    const context = { task: { meta }, skip: () => undefined } as unknown as Parameters<typeof needs>[0]
    if (isOptional) needs(context, { isMet: false, reason: 'not shipped', isOptional })
    return {
      meta: () => meta,
      result: () => ({ state: 'skipped', note: isOptional ? 'not shipped' : 'away' }),
    }
  })
  const children = { allSuites: () => [], allTests: () => tests }
  const module = { relativeModuleId: 'a.test.ts', errors: () => [], children } as unknown as TestModule
  const { failed, skipped, optional, reasons } = outcomeOf([module], [])
  expect({ failed, skipped, optional }).toEqual({ failed: 0, skipped: 1, optional: 1 })
  expect([...reasons].map(([reason, { isOptional }]) => [reason, isOptional])).toEqual([
    ['not shipped', true],
    ['away', false],
  ])
})

it('names a suite that is gone, also as one choice of a pattern with braces', () => {
  expect(() => checkSuites(['test/unit/{runtime,nowhere}/{config,async/*}.test.ts'])).toThrow(
    'matches no file: test/unit/nowhere/config.test.ts, test/unit/nowhere/async/*.test.ts',
  )
  expect(() => checkSuites()).not.toThrow()
})
