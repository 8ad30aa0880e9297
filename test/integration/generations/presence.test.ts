/** Which rebuilds tell a projector that was away too long that it may start again. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dropPrevious } from '../../../services/generations/rebuilds.ts'
import { readPositions } from '../../../services/projector/positions.ts'
import { type ModelTables, openModelTables } from '../../support/model-tables.ts'
import { openRebuildableModel, platformHistory, type RebuildableModel } from '../../support/rebuilds.ts'

let model: ModelTables

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

test('a whole rebuild says that everything was read when it began, also in partitions without a new record', async () => {
  const live = await openFilled()
  try {
    const began = Date.now()
    await live.rebuild()
    // The next record of any partition may come before the projector starts.
    expect(Math.min(...(await readUntil(live)))).toBeGreaterThanOrEqual(began)
  } finally {
    await live.close()
  }
})

test('a rebuild that continues says when its first run began, and a part of the log says nothing', async () => {
  const live = await openFilled()
  try {
    const before = Math.max(...(await readUntil(live)))
    await live.rebuild({ fromTime: before, acceptsLoss: true })
    expect(Math.max(...(await readUntil(live)))).toBe(before)
    await dropPrevious(live)
    const killed = live.rebuild({
      onPhase: async phase => {
        if (phase === 'folding') throw new Error('killed')
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const continued = Date.now()
    await live.rebuild()
    expect(Math.max(...(await readUntil(live)))).toBeLessThan(continued)
    expect(Math.min(...(await readUntil(live)))).toBeGreaterThan(before)
  } finally {
    await live.close()
  }
})

async function openFilled(): Promise<RebuildableModel> {
  const live = await openRebuildableModel(model)
  await live.append(platformHistory(3))
  await live.settled()
  return live
}

async function readUntil(live: RebuildableModel): Promise<number[]> {
  const { ofLog } = await readPositions([live], '')
  expect(ofLog.size).toBeGreaterThan(0)
  return [...ofLog.values()].map(row => row.readUntil)
}
