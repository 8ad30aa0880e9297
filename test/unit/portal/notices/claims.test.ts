/** Claims under every order of steps of several processes, on a store in which each call is one step. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { claimName, createClaims, doubtfulMs } from '../../../../services/portal/notices/claims.ts'
import type { PortalStore } from '../../../../services/portal/store/port.ts'

const notice = { notice_id: 'n' }

function storeOf(values: Map<string, string>, step: () => Promise<void>) {
  const atOnce = async <R>(work: () => R): Promise<R> => {
    await step()
    const result = work()
    await step()
    return result
  }
  const store: Pick<PortalStore, 'claim' | 'get' | 'put' | 'remove'> = {
    claim: (key, value) =>
      atOnce(() => {
        if (values.has(key)) return false
        values.set(key, value)
        return true
      }),
    get: key => atOnce(() => values.get(key)),
    put: (key, value) => atOnce(() => void values.set(key, value)),
    remove: key => atOnce(() => void values.delete(key)),
  }
  return store
}

test.each([
  ['a new notice', []],
  ['a notice in doubt', [[claimName('n'), '0']]],
] as [string, [string, string][]][])(
  'of several processes, at most one ever holds the claim of %s',
  async (_name, present) => {
    let held = 0
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 4 }), async (scheduler, processes) => {
        const values = new Map(present)
        const step = async () => void (await scheduler.schedule(Promise.resolve()))
        const notices = { get: async () => undefined }
        const claiming = Array.from({ length: processes }, () =>
          createClaims({ store: storeOf(values, step), notices, now: () => doubtfulMs + 1 })(notice, {
            takesDoubtful: true,
          }),
        )
        const claims = await scheduler.waitFor(Promise.all(claiming))
        const mine = claims.filter(({ kind }) => kind === 'mine').length
        expect(mine).toBeLessThanOrEqual(1)
        held += mine
      }),
      { numRuns: 300 },
    )
    // It would also hold if nobody ever got a claim.
    expect(held).toBeGreaterThan(100)
  },
)
