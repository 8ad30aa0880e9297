/**
 * Names each suite that runs for minutes, so that one that hangs is known, and prints the last lines of a test run: the sources of its services, what was skipped and why, what failed and why, which suites it left
 * out, and then one line that any CI can read. Failures are named here again because many a CI keeps only the end of its output.
 *
 * Runs beside Vitest's own reporter. A module that failed to load counts as one failure: its tests are not known. In CI
 * (CI=true) a skipped test counts as a failure, because CI has all that the tests need, except what its settings say is missing.
 */
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'
import { printable } from '../../../services/commands/printable.ts'

/** How many failures the summary names, and how many characters it has for the reason of one. */
const failuresNamedMax = 30
const reasonLengthMax = 1_500

/** After how many minutes a suite is named, and again. */
const minutesNamed = [4, 8, 16, 24, 32, 40]

export default class SummaryReporter implements Reporter {
  #vitest: Vitest | undefined
  /** What runs, with the test that began last. */
  readonly #running = new Map<string, { minutes: number; test: string }>()
  #minute: NodeJS.Timeout | undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunStart(): void {
    this.#minute = setInterval(() => {
      for (const [suite, running] of this.#running) {
        running.minutes++
        if (minutesNamed.includes(running.minutes))
          print(`still runs after ${running.minutes} minutes: ${suite} > ${running.test}`)
      }
    }, 60_000)
  }

  onTestModuleStart({ relativeModuleId }: TestModule): void {
    this.#running.set(relativeModuleId, { minutes: 0, test: 'its set-up' })
  }

  onTestCaseReady({ module, fullName }: TestCase): void {
    const running = this.#running.get(module.relativeModuleId)
    if (running) running.test = fullName
  }

  onTestModuleEnd({ relativeModuleId }: TestModule): void {
    this.#running.delete(relativeModuleId)
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    clearInterval(this.#minute)
    const { passed, failed, skipped, optional, reasons, sources, failures } = outcomeOf(
      modules,
      unhandledErrors,
    )
    const isCi = process.env.CI === 'true'
    for (const source of [...sources].toSorted()) print(`service: ${source}`)
    for (const [reason, { tests, isOptional, files }] of reasons) {
      print(
        `${isCi && !isOptional ? 'FAILED: CI requires what was skipped, ' : 'skipped '}${tests} tests: ${reason}`,
      )
      print(`  in ${[...files].toSorted().join(', ')}`)
    }
    for (const failure of failures.slice(0, failuresNamedMax)) print(`FAILED: ${failure}`)
    if (isCi && skipped > 0) process.exitCode = 1
    const projects = this.#vitest?.projects.map(({ name }) => name) ?? []
    if (projects.includes('short') && !projects.includes('long')) {
      print('\nThese were the short suites. `npm run test:long` runs the long ones: kills, faults, a whole')
      print(
        'Kickstarter table, many simulated worlds, and clients in other languages (about 25 minutes on two cores).',
      )
    }
    const left = isCi ? optional : skipped + optional
    print(
      `\n${passed} passed, ${isCi ? failed + skipped : failed} failed${left > 0 ? `, ${left} skipped` : ''}`,
    )
  }
}

export function outcomeOf(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>) {
  const outcome = {
    ...{ passed: 0, failed: 0, skipped: 0 },
    /** Skipped too, but CI may do without them. */
    optional: 0,
    /** The tests that were skipped, by reason. */
    reasons: new Map<string, { tests: number; isOptional: boolean; files: Set<string> }>(),
    sources: new Set<string>(),
    /** What failed, and why. */
    failures: [] as string[],
  }
  const fail = (what: string, errors: ReadonlyArray<unknown>) => {
    outcome.failed++
    outcome.failures.push(`${what}: ${reasonOfFailure(errors[0])}`)
  }
  for (const error of unhandledErrors) fail('an error that no test caught', [error])
  for (const module of modules) {
    if (module.errors().length > 0) fail(module.relativeModuleId, module.errors())
    // If the set-up of a suite failed, none of its tests ran: the suite counts as a failure, its tests as skipped.
    for (const suite of module.children.allSuites()) {
      if (suite.errors().length > 0) fail(`${module.relativeModuleId} > ${suite.fullName}`, suite.errors())
    }
    for (const test of module.children.allTests()) {
      for (const source of test.meta().sources ?? []) outcome.sources.add(source)
      const { state, errors } = test.result()
      if (state === 'passed') outcome.passed++
      else if (state === 'failed') fail(`${module.relativeModuleId} > ${test.fullName}`, errors)
      else {
        const { isOptional = false } = test.meta()
        outcome[isOptional ? 'optional' : 'skipped']++
        const reason = reasonOf(test)
        const { tests, files } = outcome.reasons.get(reason) ?? { tests: 0, files: new Set<string>() }
        outcome.reasons.set(reason, {
          tests: tests + 1,
          isOptional,
          files: files.add(module.relativeModuleId),
        })
      }
    }
  }
  return outcome
}

/** The message in one line, and what differs between the expected and the actual value. */
function reasonOfFailure(error: unknown): string {
  const { message, diff } = (typeof error === 'object' && error !== null ? error : {}) as {
    message?: unknown
    diff?: unknown
  }
  const differing = String(diff ?? '')
    .split('\n')
    .map(line => stripVTControlCharacters(line).replace(/\s+/g, ' '))
    .filter(line => /^[-+]/.test(line))
  return printable([...String(message ?? error).split('\n'), ...differing].join(' | ')).slice(
    0,
    reasonLengthMax,
  )
}

function reasonOf(test: TestCase): string {
  const result = test.result()
  return ('note' in result && result.note) || 'not run'
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
