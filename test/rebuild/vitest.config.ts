import { defineConfig } from 'vitest/config'

// Separate from `npm test`: it rebuilds a history of a million events again and again, which takes minutes.
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/rebuild/**/*.spec.ts'],
    reporters: ['default', './test/support/summary-reporter.ts'],
    disableConsoleIntercept: true,
    testTimeout: 1_800_000,
    hookTimeout: 600_000,
  },
})
