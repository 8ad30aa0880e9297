/** How a projector follows the current generation: its reader begins in it once, however long that takes. */
import { once } from 'node:events'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { EventReader } from '../../../services/log/port.ts'
import { followGenerations } from '../../../services/projector/follow.ts'
import type { Positions } from '../../../services/projector/positions/positions.ts'

interface World {
  /** The current generation. */
  ledger: string
  /** The generation that the reader has its positions of. */
  readIn: string
  isLogAway?: boolean
  leads?: boolean
  /** Which generation is promoted while the views are shown. */
  promoted?: string
}

/** What changes before a look, and what the look does: in which generation the reader is told to begin, and whose views are shown. */
type Look = [change: Partial<World>, does: string[]]

/** Looks once for each, and returns what each look does. Pauses take no time. */
async function follow(looks: readonly Look[]): Promise<string[][]> {
  const world: World = { ledger: 'one', readIn: 'one' }
  const databases = {
    ...{ base: '', views: '', read: '' },
    get ledger() {
      return world.ledger
    },
  }
  const found: string[][] = [[]]
  // As the reader of Kafka does, it only begins to look for its positions.
  const reader: Partial<EventReader> = {
    leads: () => world.leads ?? false,
    async restart() {
      if (world.isLogAway) throw new Error('the log is away')
      found.at(-1)?.push(world.ledger)
    },
  }
  const positions: Partial<Positions> = { areSuperseded: () => world.readIn !== world.ledger }
  const left = [...looks]
  const ended = new AbortController()
  const dependencies: Partial<Parameters<typeof followGenerations>[0]> = {
    ...{
      databases,
      reader: reader as EventReader,
      positions: positions as Positions,
      follow: async () => {},
      async showViews() {
        found.at(-1)?.push(`views of ${world.ledger}`)
        world.ledger = world.promoted ?? world.ledger
      },
    },
    ...{ monotonicMs: () => 0, logger: pino({ level: 'silent' }) },
    async sleep(_ms: number, signal?: AbortSignal) {
      const next = left.shift()
      if (next) {
        Object.assign(world, next[0])
        found.push([])
        return
      }
      ended.abort()
      if (signal && !signal.aborted) await once(signal, 'abort')
    },
  }
  await followGenerations(dependencies as Parameters<typeof followGenerations>[0], ended.signal)
  return found.slice(1)
}

test.each<[guarantee: string, looks: Look[]]>([
  [
    'after a promotion the reader begins once, also if it needs several looks to find its positions',
    [
      [{}, []],
      [{ ledger: 'two' }, ['two']],
      [{}, []],
      [{}, []],
      [{ readIn: 'two' }, []],
      [{}, []],
    ],
  ],
  [
    'the next generation gets a restart, also while the reader still begins in the last one',
    [
      [{ ledger: 'two' }, ['two']],
      [{}, []],
      [{ ledger: 'three' }, ['three']],
      [{}, []],
      [{ readIn: 'three' }, []],
      [{ ledger: 'four' }, ['four']],
    ],
  ],
  [
    'a reader that comes to the positions of an earlier generation begins again',
    [
      [{ ledger: 'two' }, ['two']],
      [{ readIn: 'two' }, []],
      [{ readIn: 'one' }, ['two']],
    ],
  ],
  [
    'a restart that fails is tried again',
    [
      [{ ledger: 'two', isLogAway: true }, []],
      [{ isLogAway: false }, ['two']],
      [{}, []],
    ],
  ],
  [
    'the views of a generation that is promoted while a leader shows those of the one before are shown next',
    [
      [{ leads: true, promoted: 'two' }, ['views of one']],
      [{}, ['two', 'views of two']],
      [{}, []],
    ],
  ],
])('%s', async (_, looks) => {
  expect(await follow(looks)).toEqual(looks.map(([, does]) => does))
})

test('a look that hears nothing does not hold up the end', async () => {
  const ended = new AbortController()
  const dependencies: Partial<Parameters<typeof followGenerations>[0]> = {
    follow: stopping => (stopping ? once(stopping, 'abort') : new Promise(() => {})),
    logger: pino({ level: 'silent' }),
  }
  const following = followGenerations(dependencies as Parameters<typeof followGenerations>[0], ended.signal)
  ended.abort()
  await following
})
