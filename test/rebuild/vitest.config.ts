import { defineConfig } from 'vitest/config'

// Separate from `npm test`: it rebuilds a history of a million events again and again, and turns clusters over, which takes minutes.
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/rebuild/**/*.spec.ts'],
    // Each suite needs the whole machine.
    fileParallelism: false,
    reporters: ['default', './test/support/summary-reporter.ts'],
    disableConsoleIntercept: true,
    testTimeout: 1_800_000,
    hookTimeout: 600_000,
  },
})
