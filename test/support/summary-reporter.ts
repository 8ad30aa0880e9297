/**
 * The last lines of a test run: where its services came from, what was skipped and why, then one line that any CI can read.
 *
 * Runs beside Vitest's own reporter. A module that failed to load counts as one failure: its tests are not known.
 */
import type { Reporter, TestCase, TestModule } from 'vitest/node'

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    const reasons = new Map<string, number>()
    const sources = new Set<string>()
    for (const module of modules) {
      if (module.errors().length > 0) counts.failed++
      // A suite whose set-up failed has run none of its tests: they count as skipped, the suite as a failure.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) counts.failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        for (const source of test.meta().sources ?? []) sources.add(source)
        if (state === 'passed') counts.passed++
        else if (state === 'failed') counts.failed++
        else {
          counts.skipped++
          const reason = `${module.relativeModuleId}: ${reasonOf(test)}`
          reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
        }
      }
    }
    for (const source of [...sources].toSorted()) process.stdout.write(`service: ${source}\n`)
    for (const [reason, tests] of reasons) process.stdout.write(`skipped ${tests} of ${reason}\n`)
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
  }
}

function reasonOf(test: TestCase): string {
  const result = test.result()
  return ('note' in result && result.note) || 'not run'
}
