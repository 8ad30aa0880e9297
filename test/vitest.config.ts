import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { checkSuites, isolatedUnits, LongestFirst, longSuites } from './support/runner/longest-first.ts'

checkSuites()

// The suites start hundreds of processes. Each would compile all of the code again.
process.env.NODE_COMPILE_CACHE ??= new URL(
  '../node_modules/.cache/pledgeview/compiled',
  import.meta.url,
).pathname

export default defineConfig({
  test: {
    root: fileURLToPath(new URL('..', import.meta.url)),
    // `npm test` runs the unit tests and the short ones, `npm run test:long` the long ones, `npm run test:all` all at once.
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...isolatedUnits],
          // They share nothing but code. Loading it once for many files takes a third of the time of loading it for each.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'short',
          include: ['test/!(unit)/**/*.test.ts', ...isolatedUnits],
          exclude: [...configDefaults.exclude, ...longSuites],
        },
      },
      { extends: true, test: { name: 'long', include: [...longSuites] } },
    ],
    // A file of its own servers, sockets and signals gets a process of its own.
    pool: 'forks',
    // A suite starts several processes, and many suites wait for half of their time: for sessions, horizons and polls. So three at
    // once keep two cores busy. With more, they only wait for each other.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/support/runner/summary-reporter.ts'],
    // How long `expect.poll` asks: a busy machine is no failure.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // Only a hang takes this long, also on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
})
