import type { Logger } from 'pino'
import { describe, expect, test } from 'vitest'
import { SupersededAssignment } from '../../../../services/log/port.ts'
import { FoldPaused, SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import type { FoldReport } from '../../../../services/projector/fold/fold-worker.ts'
import { type FoldLoopDependencies, runFoldLoop } from '../../../../services/projector/fold/fold-workers.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { TablesError } from '../../../../services/tables/port.ts'

const passing = () => new TablesError('away', { retryable: true })

/** What the fold worker does at the next calls, and everything that the loop did. */
interface Script {
  acquireLeadership?: (() => void)[]
  fold?: (() => FoldReport | undefined)[]
  /** Ends the loop. Default: when the script ends. */
  interrupt?: AbortController
  leads?: boolean[]
  retryMsMax?: number
}

/** Runs the loop on a scripted fold worker until the script ends. Waits are recorded and take no time. Only a rest ends with an urgent batch. */
async function play({
  acquireLeadership = [],
  fold = [],
  leads = [],
  interrupt: abort = new AbortController(),
  retryMsMax = 60_000,
}: Script): Promise<string[]> {
  const did: string[] = []
  let nowMs = 0

  function wait(what: string, ms: number): void {
    nowMs += ms
    did.push(`${what} ${ms}`)
  }

  const loop: FoldLoopDependencies = {
    foldWorker: {
      async acquireLeadership() {
        did.push('lead')
        acquireLeadership.shift()?.()
      },
      async fold() {
        did.push('fold')
        const next = fold.shift()
        if (fold.length === 0) abort.abort()
        return next?.()
      },
    },
    leads: () => leads.shift() ?? true,
    notifier: { notify() {}, wait: async ms => wait('notifier', ms) },
    idleMsMax: 500,
    retryMsMax,
    holder: 'holder',
    metrics: createMetrics(),
    logger: {
      debug: (report: FoldReport) => did.push(`folded ${report.campaigns}`),
      info: () => {},
      warn: ({ stage, error }: { stage?: string; error: string }) =>
        did.push(`${stage ? 'retry' : 'superseded'}: ${error}`),
    } as unknown as Logger,
    monotonicMs: () => nowMs,
    now: () => nowMs,
    rest: async ms => wait('rest', ms),
    sleep: async ms => wait('sleep', ms),
  }
  await runFoldLoop(loop, abort.signal)
  return did
}

function report(campaigns: number, elapsedMs: number): FoldReport {
  return { campaigns, keys: 0, elapsedMs, oldestAt: 0, isOfBacklog: false, statements: 1 }
}

function fails(error: Error): () => never {
  return () => {
    throw error
  }
}

describe('the fold loop', () => {
  test('ends without a failure if a fold in many pieces is interrupted between two of them', async () => {
    const interrupt = new AbortController()
    const beforeNextPiece = () => {
      interrupt.abort()
      interrupt.signal.throwIfAborted()
      return undefined
    }
    const did = await play({ interrupt, fold: [beforeNextPiece, () => undefined] })
    expect(did).toEqual(['lead', 'fold'])
  })

  test('acquires leadership once, folds while there is something to fold, and waits for the notifier when there is not', async () => {
    const did = await play({ fold: [() => report(3, 40), () => undefined, () => report(1, 5)] })
    expect(did).toEqual([
      'lead',
      'fold',
      'folded 3',
      'rest 160',
      'fold',
      'notifier 500',
      'fold',
      'folded 1',
      'rest 195',
    ])
  })

  test.each([
    ['a quarter of the time that a fold took', false, 700, 175],
    ['a quarter, and no longer than two seconds', false, 9_000, 2_000],
    ['so long that no two folds begin within 200 ms, because each writes a part', false, 120, 80],
    ['three times as long as a fold took while there is a backlog', true, 300, 900],
    ['three times as long, and no longer than two seconds', true, 9_000, 2_000],
  ])('pauses for %s', async (_, isOfBacklog, elapsedMs, restMs) => {
    const did = await play({ fold: [() => ({ ...report(1, elapsedMs), isOfBacklog }), () => undefined] })
    expect(did.filter(what => what.startsWith('rest'))).toEqual([`rest ${restMs}`])
  })

  test('folds nothing while another process leads, and acquires leadership again when it leads again', async () => {
    const did = await play({
      leads: [false, true, false, true],
      fold: [() => report(1, 1), () => undefined],
    })
    expect(did).toEqual([
      'notifier 500',
      'lead',
      'fold',
      'folded 1',
      'rest 199',
      'notifier 500',
      'lead',
      'fold',
      'notifier 500',
    ])
  })

  test('backs off longer each time that it is superseded, so that one of two leading processes can fold', async () => {
    const superseded = fails(new SupersededFoldWorker('other'))
    const did = await play({
      fold: [...Array.from({ length: 8 }, () => superseded), () => report(1, 3), superseded, () => undefined],
      retryMsMax: 10,
    })
    const sleeps = did.filter(what => what.startsWith('sleep')).map(what => Number(what.split(' ')[1]))
    expect(did.slice(0, 6)).toEqual(['lead', 'fold', 'superseded: other', 'sleep 1000', 'lead', 'fold'])
    expect(sleeps).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 1_000])
  })

  test('retries to acquire leadership', async () => {
    const did = await play({ acquireLeadership: [fails(passing())], fold: [() => undefined] })
    expect(did).toEqual(['lead', 'retry: away', 'sleep 1000', 'lead', 'fold', 'notifier 500'])
  })

  test('gives up when failures last too long; a success resets the time', async () => {
    const failing = Array.from({ length: 4 }, () => fails(passing()))
    await expect(play({ fold: failing, retryMsMax: 2_500 })).rejects.toThrow('away')
    const mended = [...failing.slice(0, 2), () => undefined, ...failing.slice(0, 2), () => undefined]
    await expect(play({ fold: mended, retryMsMax: 2_500 })).resolves.toBeDefined()
  })

  test.each([
    { what: 'another process led meanwhile', between: {}, leads: [true, false, true] },
    { what: 'the fold was paused meanwhile', between: { fold: [fails(new FoldPaused())] } },
    {
      what: 'the group gave its partitions anew',
      between: { fold: [fails(new SupersededAssignment('ended'))] },
    },
    { what: 'it was superseded meanwhile', between: { fold: [fails(new SupersededFoldWorker('other'))] } },
  ])('retries for the whole time again if $what', async ({ between: { fold = [] }, leads = [] }) => {
    const away = () => fails(passing())
    const script = (retryMsMax: number) => ({
      ...{ fold: [away(), ...fold, away(), away(), () => undefined], leads: [...leads], retryMsMax },
    })
    // The last two are 1,000 ms apart, and the pause is never over sooner than 200 ms.
    await expect(play(script(1_000))).resolves.toBeDefined()
    await expect(play(script(999))).rejects.toThrow('away')
  })

  test('throws a failure that is not retryable at once', async () => {
    const broken = fails(new TablesError('no such table', { retryable: false }))
    await expect(play({ fold: [broken, () => undefined] })).rejects.toThrow('no such table')
    await expect(
      play({ acquireLeadership: [fails(new RangeError('bug'))], fold: [() => undefined] }),
    ).rejects.toThrow('bug')
  })
})
