import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Not part of `npm test`: it builds images and brings up a whole deployment, which takes minutes.
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/compose/**/*.spec.ts'],
    reporters: ['default', './test/support/runner/summary-reporter.ts'],
    disableConsoleIntercept: true,
    testTimeout: 180_000,
    // Images may have to be downloaded or built.
    hookTimeout: 1_800_000,
  },
})
