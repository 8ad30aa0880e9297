/** `pledgeview rebuild`, as an operator runs it. */
import { expect } from 'vitest'
import type { Deployment } from './deployment.ts'
import { type ResultLine, resultOf } from './rebuild-service.ts'

const runsMax = 10

/**
 * Runs it to its end. A swap that a busy machine cannot do in its time is given up, five times, and then the rebuild ends and has to
 * be run again, which goes on with it. Fails if it ends for any other reason.
 */
export async function rebuildToEnd(deployment: Deployment): Promise<ResultLine & { runs: number }> {
  for (let runs = 1; ; runs++) {
    const done = await deployment.command(['rebuild', '--json'])
    const result = resultOf(done)
    const isTooSlow = /could not be swapped within \d+ ms/.test(result.failure ?? '')
    if (isTooSlow && runs < runsMax) continue
    expect(done.code, done.stderr).toBe(0)
    return { ...result, runs }
  }
}
