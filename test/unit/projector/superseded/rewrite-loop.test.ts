/** The loop that rewrites tables: when it looks, how it fails, and that it never holds up the end of the process. */

import { describe, expect, test, vi } from 'vitest'
import { type Rewrite, runRewriteLoop } from '../../../../services/projector/superseded/rewrite-loop.ts'
import type { Sleep } from '../../../../services/runtime/sleep.ts'
import { generationOf } from '../../../../services/tables/generations.ts'
import { type CallOptions, type Tables, TablesError } from '../../../../services/tables/port.ts'

interface Fake {
  withdrawn: number
  /** What OPTIMIZE does. */
  optimize: (options: CallOptions) => Promise<void>
}

/** One table, campaign_ledger, with two parts until it is rewritten. */
function fakeTables({ withdrawn, optimize }: Fake): Tables & { looks: () => number } {
  let parts = ['a', 'b']
  let looks = 0
  const answers: [part: string, rows: () => object[]][] = [
    [
      'argMax(name',
      () => [{ table: 'campaign_ledger', parts: parts.length, oldestMs: 0, largest: 'a', otherRows: 1 }],
    ],
    [
      'AS entities',
      () => {
        looks++
        return [{ entities: withdrawn }]
      },
    ],
    ['AS statements', () => [{ statements: 0 }]],
    ['SELECT name', () => parts.map(name => ({ name }))],
  ]
  return {
    looks: () => looks,
    async rows<Row>({ query }: { query: string }) {
      return (answers.find(([part]) => query.includes(part))?.[1]() ?? []) as Row[]
    },
    async run(_, options = {}) {
      await optimize(options)
      parts = ['a_b']
    },
    insert: async () => {},
    close: async () => {},
  }
}

/** Runs the loop on a clock that only its own sleeps move, and stops it after that many ms. */
async function runFor(ms: number, fake: Fake, { leads = true } = {}) {
  const stop = new AbortController()
  const tables = fakeTables(fake)
  const rewrites: Rewrite[] = []
  const failures: string[] = []
  let now = 0
  const sleep: Sleep = async slept => {
    now += slept
    if (now > ms) stop.abort()
  }
  await runRewriteLoop(
    {
      shard: { tables: tables, databases: generationOf({ base: 'm', views: 'v' }, 1) },
      leads: () => leads,
      checkMs: 60_000,
      supersededMsMax: 86_400_000,
      onRewrite: rewrite => rewrites.push(rewrite),
      onFailure: error => failures.push(error.message),
      monotonicMs: () => now,
      sleep,
    },
    stop.signal,
  )
  return { rewrites, failures, looks: tables.looks() }
}

const done = async () => {}

describe('the rewrite loop', () => {
  test('looks soon after it begins to lead, and then once per period', async () => {
    expect(await runFor(5_000, { withdrawn: 0, optimize: done })).toMatchObject({ looks: 0 })
    expect(await runFor(200_000, { withdrawn: 0, optimize: done })).toMatchObject({ looks: 4, rewrites: [] })
  })

  test('rewrites a table only if it has withdrawn content, and only once', async () => {
    const { rewrites, failures } = await runFor(200_000, { withdrawn: 3, optimize: done })
    expect(rewrites).toEqual([expect.objectContaining({ table: 'campaign_ledger', withdrawn: 3 })])
    expect(failures).toEqual([])
  })

  test('does nothing while another process leads', async () => {
    const fake = { withdrawn: 3, optimize: done }
    expect(await runFor(200_000, fake, { leads: false })).toEqual({ rewrites: [], failures: [], looks: 0 })
  })

  test('reports a failure, goes on, and tries again at the next look', async () => {
    let attempts = 0
    const { rewrites, failures } = await runFor(300_000, {
      withdrawn: 1,
      // Fails for longer than the first look tries.
      async optimize() {
        if (attempts++ < 300) throw new TablesError('ClickHouse is away', { retryable: true })
      },
    })
    expect(failures).toEqual([expect.stringContaining('ClickHouse is away')])
    expect(rewrites).toHaveLength(1)
  })

  test('ends at once when the process ends, also while ClickHouse merges', async () => {
    const stop = new AbortController()
    let isMerging = false
    const optimize = ({ signal }: CallOptions) =>
      new Promise<void>((_, reject) => {
        isMerging = true
        const abandoned = new TablesError('the caller no longer waits', { retryable: false })
        signal?.addEventListener('abort', () => reject(abandoned))
      })
    let now = 0
    const running = runRewriteLoop(
      {
        shard: {
          tables: fakeTables({ withdrawn: 1, optimize }),
          databases: generationOf({ base: 'm', views: 'v' }, 1),
        },
        leads: () => true,
        checkMs: 1_000,
        supersededMsMax: 1_000,
        onRewrite: () => {},
        onFailure: error => {
          throw error
        },
        monotonicMs: () => now,
        sleep: async ms => {
          now += ms
        },
      },
      stop.signal,
    )
    await vi.waitFor(() => expect(isMerging).toBe(true), { timeout: 20_000 })
    stop.abort()
    await running
  })
})
