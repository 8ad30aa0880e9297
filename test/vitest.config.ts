import { defineConfig } from 'vitest/config'
import { LongestFirst } from './support/longest-first.ts'

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // ClickHouse runs in-process (chDB): one data directory a process, so every file gets a process of its own.
    pool: 'forks',
    // Most of the long suites wait for Kafka or for time to pass: one more than a small machine has cores.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/support/summary-reporter.ts'],
    // How long `expect.poll` asks: a busy machine is no failure.
    expect: { poll: { timeout: 20_000, interval: 20 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
