/**
 * The last lines of a test run: the sources of its services, what was skipped and why, which suites it left out, and then one
 * line that any CI can read.
 *
 * Runs beside Vitest's own reporter. A module that failed to load counts as one failure: its tests are not known. In CI
 * (CI=true) a skipped test counts as a failure, because CI has all that the tests need.
 */
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

interface Outcome {
  passed: number
  failed: number
  skipped: number
  /** The tests that were skipped, by reason. */
  reasons: Map<string, { tests: number; files: Set<string> }>
  sources: Set<string>
}

export default class SummaryReporter implements Reporter {
  #vitest: Vitest | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    const { passed, failed, skipped, reasons, sources } = outcomeOf(modules, unhandledErrors.length)
    const isCi = process.env.CI === 'true'
    for (const source of [...sources].toSorted()) print(`service: ${source}`)
    for (const [reason, { tests, files }] of reasons) {
      print(`${isCi ? 'FAILED: CI requires what was skipped, ' : 'skipped '}${tests} tests: ${reason}`)
      print(`  in ${[...files].toSorted().join(', ')}`)
    }
    if (isCi && skipped > 0) process.exitCode = 1
    const projects = this.#vitest?.projects.map(({ name }) => name) ?? []
    if (projects.includes('short') && !projects.includes('long')) {
      print('\nThese were the short suites. `npm run test:long` runs the long ones: kills, faults, a whole')
      print('Kickstarter table, many simulated worlds, and clients in other languages (about 10 minutes).')
    }
    const counts = isCi
      ? `${passed} passed, ${failed + skipped} failed`
      : `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
    print(`\n${counts}`)
  }
}

function outcomeOf(modules: ReadonlyArray<TestModule>, errors: number): Outcome {
  const outcome: Outcome = { passed: 0, failed: errors, skipped: 0, reasons: new Map(), sources: new Set() }
  for (const module of modules) {
    if (module.errors().length > 0) outcome.failed++
    // If the set-up of a suite failed, none of its tests ran: the suite counts as a failure, its tests as skipped.
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) outcome.failed++
    for (const test of module.children.allTests()) {
      for (const source of test.meta().sources ?? []) outcome.sources.add(source)
      const { state } = test.result()
      if (state === 'passed') outcome.passed++
      else if (state === 'failed') outcome.failed++
      else {
        outcome.skipped++
        const reason = reasonOf(test)
        const { tests, files } = outcome.reasons.get(reason) ?? { tests: 0, files: new Set<string>() }
        outcome.reasons.set(reason, { tests: tests + 1, files: files.add(module.relativeModuleId) })
      }
    }
  }
  return outcome
}

function reasonOf(test: TestCase): string {
  const result = test.result()
  return ('note' in result && result.note) || 'not run'
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
