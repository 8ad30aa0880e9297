/** The live model of the tests of a file, with everything that a rebuild needs. */
import { afterEach, beforeEach, vi } from 'vitest'
import { useModelTables } from '../projector/use-model-tables.ts'
import { openRebuildableModel, platformHistory, type RebuildableModel } from './rebuilds.ts'

/** Opens one for each test, in which a history of so many campaigns is settled, and closes it. */
export function useRebuildable(campaigns: number, take: (live: RebuildableModel) => void): void {
  // A busy machine is no failure: `settled` alone waits up to four minutes.
  vi.setConfig({ testTimeout: 480_000, hookTimeout: 300_000 })
  const model = useModelTables()
  let live: RebuildableModel | undefined
  beforeEach(async () => {
    live = await openRebuildableModel(model)
    take(live)
    await live.append(platformHistory(campaigns))
    await live.settled()
  })
  afterEach(() => live?.close())
}
