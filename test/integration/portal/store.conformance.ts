/** The promises of the port `PortalStore`, on every implementation. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { PortalStore } from '../../../services/portal/store/port.ts'

export interface StoreSuite {
  name: string
  /** Two stores on the same data, as two portals have them. */
  open(): Promise<{ first: PortalStore; second: PortalStore; pass(ms: number): Promise<void> }>
}

/** Runs the suite. `pass` lets time go by for the stores. */
export function storeConformance({ name, open }: StoreSuite): void {
  describe(`the portal's store: ${name}`, () => {
    let first: PortalStore
    let second: PortalStore
    let pass: (ms: number) => Promise<void>
    beforeEach(async () => {
      const opened = await open()
      ;({ first, second, pass } = opened)
      return async () => {
        await first.close()
        await second.close()
      }
    })

    test('what one portal puts, another gets', async () => {
      await first.put('a', 'one', 60_000)
      expect(await second.get('a')).toBe('one')
      await second.put('a', 'two', 60_000)
      expect(await first.get('a')).toBe('two')
      expect(await first.get('b')).toBeUndefined()
    })

    test('a value is gone after its time', async () => {
      await first.put('a', 'one', 200)
      await first.put('b', 'two', 60_000)
      await pass(250)
      expect([await first.get('a'), await first.take('a'), await first.replace('a', 'three', 1_000)]).toEqual(
        [undefined, undefined, false],
      )
      expect(await first.get('b')).toBe('two')
    })

    test('of many that take a value at once, one gets it', async () => {
      for (let round = 0; round < 20; round++) {
        await first.put('a', 'one', 60_000)
        const taken = await Promise.all(
          Array.from({ length: 8 }, (_, index) => (index % 2 ? first : second).take('a')),
        )
        expect(taken.filter(value => value === 'one')).toHaveLength(1)
      }
    })

    test('a value that was removed does not come back by a replacement', async () => {
      await first.put('a', 'one', 60_000)
      expect(await second.replace('a', 'two', 60_000)).toBe(true)
      expect(await first.get('a')).toBe('two')
      await first.remove('a')
      expect(await second.replace('a', 'three', 60_000)).toBe(false)
      expect(await second.get('a')).toBeUndefined()
    })

    test('no count is lost between portals, and counting begins again after the window', async () => {
      const counts = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).count('c', 60_000)),
      )
      expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
      expect(await first.count('d', 300)).toBe(1)
      await pass(350)
      expect(await second.count('d', 300)).toBe(1)
    })

    test('a later count does not prolong the window', async () => {
      let counted = await first.count('c', 300)
      // Each count comes long before the end of a window that the one before had prolonged, so such a window would never end.
      for (let counts = 0; counts < 60 && (counts === 0 || counted > 1); counts++) {
        await pass(50)
        counted = await first.count('c', 300)
      }
      expect(counted).toBe(1)
    })
  })
}
