import { describe, expect, test } from 'vitest'
import { SupersededFolder } from '../../../services/projector/fold-epochs.ts'
import type { FoldReport } from '../../../services/projector/folder.ts'
import { type FolderLoop, runFolder } from '../../../services/projector/run-folder.ts'
import { TablesError } from '../../../services/shared/tables/port.ts'

const passing = () => new TablesError('away', { retryable: true })

/** What the folder does when it is called next, and what the loop did in all. */
interface Script {
  takeOver?: (() => void)[]
  fold?: (() => FoldReport | undefined)[]
  leads?: boolean[]
  retryMsMax?: number
}

/** Runs the loop over a scripted folder until the script is used up; waits cost nothing but are noted. */
async function play({
  takeOver = [],
  fold = [],
  leads = [],
  retryMsMax = 60_000,
}: Script): Promise<string[]> {
  const did: string[] = []
  const abort = new AbortController()
  let nowMs = 0

  function wait(what: string, ms: number): void {
    nowMs += ms
    did.push(`${what} ${ms}`)
  }

  const loop: FolderLoop = {
    folder: {
      async takeOver() {
        did.push('take over')
        takeOver.shift()?.()
      },
      async fold() {
        did.push('fold')
        const next = fold.shift()
        if (fold.length === 0) abort.abort()
        return next?.()
      },
    },
    leads: () => leads.shift() ?? true,
    bell: { ring() {}, wait: async ms => wait('bell', ms) },
    idleMsMax: 500,
    retryMsMax,
    onFold: report => did.push(`folded ${report.campaigns}`),
    onRetry: error => did.push(`retry: ${error.message}`),
    onSuperseded: error => did.push(`superseded: ${error.message}`),
    onTakeOver: () => {},
    monotonicMs: () => nowMs,
    now: () => nowMs,
    sleep: async ms => wait('sleep', ms),
  }
  await runFolder(loop, abort.signal)
  return did
}

function report(campaigns: number, elapsedMs: number): FoldReport {
  return { campaigns, keys: 0, elapsedMs, oldestAt: 0, statements: 1 }
}

function fails(error: Error): () => never {
  return () => {
    throw error
  }
}

describe('the folder’s loop', () => {
  test('takes over once, folds while there is something, and waits for the bell when there is not', async () => {
    const did = await play({ fold: [() => report(3, 40), () => undefined, () => report(1, 5)] })
    expect(did).toEqual([
      'take over',
      'fold',
      'folded 3',
      'sleep 10',
      'fold',
      'bell 500',
      'fold',
      'folded 1',
      'sleep 1.25',
    ])
  })

  test('rests a quarter of what a fold took, and no longer than two seconds', async () => {
    const did = await play({ fold: [() => report(1, 700), () => report(1, 9_000), () => undefined] })
    expect(did.filter(what => what.startsWith('sleep'))).toEqual(['sleep 175', 'sleep 2000'])
  })

  test('rests as long as a fold took while it works off a backlog', async () => {
    const old = (elapsedMs: number) => ({ ...report(1, elapsedMs), oldestAt: -60_000 })
    const did = await play({ fold: [() => old(700), () => old(9_000), () => undefined] })
    expect(did.filter(what => what.startsWith('sleep'))).toEqual(['sleep 700', 'sleep 2000'])
  })

  test('folds nothing while another process leads, and takes over again when it is its turn again', async () => {
    const did = await play({
      leads: [false, true, false, true],
      fold: [() => report(1, 1), () => undefined],
    })
    expect(did).toEqual([
      'bell 500',
      'take over',
      'fold',
      'folded 1',
      'sleep 0.25',
      'bell 500',
      'take over',
      'fold',
      'bell 500',
    ])
  })

  test('takes over again after it was superseded', async () => {
    const did = await play({ fold: [fails(new SupersededFolder('other')), () => undefined] })
    expect(did).toEqual([
      'take over',
      'fold',
      'superseded: other',
      'sleep 1000',
      'take over',
      'fold',
      'bell 500',
    ])
  })

  test('stands back for longer each time that it is superseded, so that one of two that lead can fold', async () => {
    const superseded = fails(new SupersededFolder('other'))
    const did = await play({
      fold: [...Array.from({ length: 8 }, () => superseded), () => report(1, 3), superseded, () => undefined],
      retryMsMax: 10,
    })
    const sleeps = did.filter(what => what.startsWith('sleep')).map(what => Number(what.split(' ')[1]))
    expect(sleeps).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 3, 1_000])
  })

  test('tries again what may pass, and does not take over for it', async () => {
    const did = await play({ fold: [fails(passing()), () => undefined] })
    expect(did).toEqual(['take over', 'fold', 'retry: away', 'sleep 1000', 'fold', 'bell 500'])
  })

  test('tries a take-over again that failed', async () => {
    const did = await play({ takeOver: [fails(passing())], fold: [() => undefined] })
    expect(did).toEqual(['take over', 'retry: away', 'sleep 1000', 'take over', 'fold', 'bell 500'])
  })

  test('gives up on what does not pass in time; a success starts the time anew', async () => {
    const failing = Array.from({ length: 4 }, () => fails(passing()))
    await expect(play({ fold: failing, retryMsMax: 2_500 })).rejects.toThrow('away')
    const mended = [...failing.slice(0, 2), () => undefined, ...failing.slice(0, 2), () => undefined]
    await expect(play({ fold: mended, retryMsMax: 2_500 })).resolves.toBeDefined()
  })

  test('throws at once what cannot pass', async () => {
    const broken = fails(new TablesError('no such table', { retryable: false }))
    await expect(play({ fold: [broken, () => undefined] })).rejects.toThrow('no such table')
    await expect(play({ takeOver: [fails(new RangeError('bug'))], fold: [() => undefined] })).rejects.toThrow(
      'bug',
    )
  })
})
