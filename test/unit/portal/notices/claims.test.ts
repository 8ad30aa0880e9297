/** Claims under every order of steps: several processes, each with its own, later view of a log in partitions. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { NoticeEvent } from '../../../../contracts/events/portal-event.ts'
import { createClaims } from '../../../../services/portal/notices/claims.ts'
import type { StateTopic } from '../../../../services/shared/event-log/state-topic.ts'

const notice = { notice_id: 'n', rule: 'ANNOUNCEMENT', account_id: null } as const
const partitions = 3

interface LogRecord {
  key: string
  state: NoticeEvent | null
}

/** A process's view of the log, as on Kafka: a read of the ends takes one step per partition, so it is not one moment. */
function viewOf(log: LogRecord[][], step: () => Promise<void>): StateTopic<'notices'> {
  const memory = new Map<string, NoticeEvent>()
  const read = Array.from({ length: partitions }, () => 0)
  async function refresh(): Promise<void> {
    for (const [partition, records] of log.entries()) {
      await step()
      const end = records.length
      await step()
      for (const { key, state } of records.slice(read[partition], end)) {
        if (state) memory.set(key, state)
        else memory.delete(key)
      }
      read[partition] = Math.max(read[partition] ?? 0, end)
    }
  }
  return {
    topic: 'notices',
    refresh,
    get: async key => memory.get(key),
    group: async group =>
      [...memory]
        .filter(([key]) => key === group || key.startsWith(`${group}/`))
        .map(([key, state]) => ({ key, state })),
    all: async () => [...memory].map(([key, state]) => ({ key, state })),
    async write(changes) {
      for (const { key, state } of changes) {
        await step()
        log[partitionOf(key)]?.push({ key, state })
      }
      await refresh()
    },
    skipped: () => 0,
    health: () => ({ ok: true, detail: '' }),
    close: async () => undefined,
  }
}

function partitionOf(key: string): number {
  return [...key].reduce((sum, character) => sum + (character.codePointAt(0) ?? 0), 0) % partitions
}

test('of several processes, at most one ever holds the claim of a notice', async () => {
  let held = 0
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 4 }), async (scheduler, processes) => {
      const log: LogRecord[][] = Array.from({ length: partitions }, () => [])
      const step = async () => void (await scheduler.schedule(Promise.resolve()))
      const claiming = Array.from({ length: processes }, (_, index) =>
        createClaims({
          topic: viewOf(log, step),
          sender: `process-${index}`,
          now: () => 0,
          random: () => 0.5,
          sleep: step,
        })(notice),
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
})
