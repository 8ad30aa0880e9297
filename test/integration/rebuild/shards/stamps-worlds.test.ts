/**
 * Stamps that are taken over in random worlds: each campaign is the same on both sides, or is newer, hidden, deleted, older or missing
 * on one of them. The command is killed at each of its statements, and repeated.
 *
 * Both sides are on one server here, which is quicker. PLEDGEVIEW_TEST_SEED repeats the worlds.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { intBetween, randomOf } from '../../../../services/demo/random.ts'
import { FoldStopped } from '../../../../services/projector/fold/fold-epochs.ts'
import { takeEpochStatement } from '../../../../services/projector/fold/fold-statements.ts'
import { purgeStagedStamps } from '../../../../services/purge/staged-stamps.ts'
import { listStaged, stage } from '../../../../services/rebuild/staged-stamps.ts'
import { isStopped } from '../../../../services/rebuild/stopped-fold.ts'
import { createPermit, isRevoked } from '../../../../services/rebuild/swap-permit.ts'
import { releaseStamps, StampsRefused } from '../../../../services/rebuild/take-stamps.ts'
import { holdTablesIdentity } from '../../../../services/shared/tables/identity.ts'
import type { Databases, Shard, Tables } from '../../../../services/shared/tables/port.ts'
import { type ModelTables, openModelTables } from '../../../support/model-tables.ts'
import { apiKeyEvent, campaignEvent, campaignTombstone } from '../../../support/sample-events.ts'
import {
  type Fate,
  harmless,
  losses,
  openSide,
  openStampsWorld,
  randomCampaigns,
  returns,
  type World,
} from '../../../support/stamps-world.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000 })

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20191224'

let model: ModelTables
const openWorld = (campaigns: ReadonlyMap<string, Fate>, how?: { aheadMs?: number }) =>
  openStampsWorld(model, campaigns, how)

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

async function stampsAt({ tables, databases }: Shard): Promise<Map<string, number>> {
  const rows = await tables.rows<{ id: string; stamp: number }>({
    query: `SELECT campaign_id AS id, toUnixTimestamp64Milli(updated_at) AS stamp FROM ${databases.model}.campaigns FINAL`,
  })
  return new Map(rows.map(({ id, stamp }) => [id, Number(stamp)]))
}

async function floorOf({ tables, databases }: Shard): Promise<number> {
  const [row] = await tables.rows<{ floor: number }>({
    query: `SELECT toUnixTimestamp64Milli(max(reached)) AS floor FROM ${databases.model}.stamp_floor`,
  })
  return Number(row?.floor)
}

/** What pollers of the other tables rely on. */
async function expectTaken({ there, here, campaigns }: World): Promise<void> {
  const [old, own] = [await stampsAt(there), await stampsAt(here)]
  const watermark = await floorOf(there)
  for (const [id, stamp] of own) {
    const fate = campaigns.get(id)
    if (fate === 'same') {
      expect(stamp, id).toBe(old.get(id))
      continue
    }
    expect(stamp, `${id} (${fate}) is fetched`).toBeGreaterThanOrEqual(watermark)
    expect(stamp, `${id} (${fate}) has a stamp of its own`).toBeGreaterThan(old.get(id) ?? 0)
  }
  expect(await floorOf(here)).toBeGreaterThanOrEqual(watermark)
  expect(await listStaged(here), 'nothing is left').toEqual([])
  expect(await isStopped(there)).toBe(true)
  await expect(there.fold()).rejects.toBeInstanceOf(FoldStopped)
  expect(await floorOf(there), 'the old watermark stands still').toBe(watermark)
}

class Killed extends Error {}

/** Tables of a process that dies at its n-th statement: before it, or once the server has done it. Later it does nothing. */
function dyingAt(at: number, isDone: boolean) {
  let statements = 0
  const isDead = () => statements >= at
  function wrap(tables: Tables): Tables {
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      if (isDead()) throw new Killed()
      statements++
      if (!isDead()) return work()
      if (isDone) await work()
      throw new Killed()
    }
    return {
      rows: (...args: Parameters<Tables['rows']>) => call(() => tables.rows(...args)) as never,
      run: (...args) => call(() => tables.run(...args)),
      insert: (...args) => call(() => tables.insert(...args)),
      close: async () => {},
    }
  }
  return { wrap, isDead }
}

describe.each([1, 2])('world %i', number => {
  test('killed at any statement, and repeated, it ends with the same stamps, and the old tables stand still', async () => {
    const random = randomOf(`${seed}/${number}`)
    const world = await openWorld(randomCampaigns(random, harmless))
    const { there, here } = world
    let isOver = false
    for (let at = intBetween(random, 1, 5); !isOver; at += 5) {
      const { wrap, isDead } = dyingAt(at, random() < 0.5)
      const from = [{ ...there, tables: wrap(there.tables) }]
      await world.take({ tables: wrap(here.tables), from }).catch(error => {
        if (!isDead()) throw error
      })
      isOver = !isDead()
      // A projector of the old tables that starts again waits from the moment on at which they are stopped.
      if (await isStopped(there)) await expect(there.fold()).rejects.toBeInstanceOf(FoldStopped)
    }
    const taken = await world.take()
    await expectTaken(world)
    const same = [...world.campaigns.values()].filter(fate => fate === 'same').length
    expect(taken).toMatchObject({ same, missing: 0 })
  })
})

test.each([
  { title: 'ten minutes', aheadMs: 600_000 },
  { title: 'a day', aheadMs: 86_400_000 },
])('a clock of the old server that is ahead by $title hides no change', async ({ aheadMs }) => {
  const world = await openWorld(randomCampaigns(randomOf(`${seed}/ahead`), harmless), { aheadMs })
  await world.take()
  await expectTaken(world)
  // Repeated: each stop moves the floor of a clock that is ahead by a little.
  await world.take()
  await expectTaken(world)
})

test('what is missing here is refused and named, and goes on only if that is accepted', async () => {
  const world = await openWorld(randomCampaigns(randomOf(`${seed}/missing`), [...harmless, ...losses]))
  const before = await stampsAt(world.here)
  const lost = [...world.campaigns].filter(([, fate]) => losses.includes(fate)).map(([id]) => id)
  const refused = await world.take().catch(error => error)
  expect(refused).toBeInstanceOf(StampsRefused)
  expect(lost.some(id => refused.message.includes(id))).toBe(true)
  expect(await stampsAt(world.here), 'nothing was changed').toEqual(before)
  expect(await isStopped(world.there), 'the old tables are folded again').toBe(false)
  await world.there.fold()
  expect(await world.take({ acceptsLoss: true })).toMatchObject({ missing: lost.length })
  await expectTaken(world)
})

test.each(returns)('a withdrawal that the log has lost is always refused: %s', async fate => {
  const world = await openWorld(
    new Map<string, Fate>([...randomCampaigns(randomOf(seed), harmless), ['back', fate]]),
  )
  const refusal = /^back is shown here, but deleted, hidden or revoked/
  await expect(world.take({ acceptsLoss: true })).rejects.toThrow(refusal)
  await world.here.ingest([campaignTombstone('back')])
  await world.here.fold()
  await world.take()
  await expectTaken(world)
})

test('a key that was revoked in the old tables alone is refused', async () => {
  const world = await openWorld(new Map<string, Fate>([['c', 'same']]))
  const revoked = apiKeyEvent({ key: 'k', account_id: 'a', version: 2, status: 'REVOKED' })
  await world.there.ingest([revoked])
  await world.there.fold()
  await expect(world.take({ acceptsLoss: true })).rejects.toThrow(/^API key k is shown here/)
  await world.here.ingest([revoked])
  expect(await world.take()).toEqual({ same: 1, different: 0, missing: 0 })
})

test('what is no other side is refused: empty tables, the same tables, other secrets', async () => {
  const world = await openWorld(new Map<string, Fate>([['c', 'same']]))
  const empty = await openSide(model)
  await expect(world.take({ from: [empty] })).rejects.toThrow('never filled')
  await empty.fold()
  await expect(world.take({ from: [empty] })).rejects.toThrow('never filled')
  await expect(world.take({ from: [world.here] })).rejects.toThrow('leads to these tables')
  const hold = ({ databases }: { databases: Databases }, pepper: string) =>
    holdTablesIdentity(model.tables, databases, { PLEDGEVIEW_KEY_PEPPER: pepper })
  await hold(world.here, 'own')
  await hold(world.there, 'other')
  await expect(world.take()).rejects.toThrow('PLEDGEVIEW_KEY_PEPPER of the other tables differs')
  expect(await isStopped(world.there)).toBe(false)
})

test('a projector that had looked before the stop gets no epoch after it, until the stop is released', async () => {
  const { there, take } = await openWorld(new Map<string, Fate>([['c', 'same']]))
  await take()
  await there.tables.run(takeEpochStatement(there.databases, 'late'))
  expect(await isStopped(there)).toBe(true)
  expect(await releaseStamps(there, 'release')).toBe(true)
  expect(await releaseStamps(there, 'release')).toBe(false)
  await there.ingest([campaignEvent({ campaign_id: 'c', version: 5 })])
  await there.fold()
})

/** Runs `work` once, before the first statement whose text has `text`. */
function before(tables: Tables, text: string, work: () => Promise<unknown>): Tables {
  let isDone = false
  const first = async (query: string) => {
    if (isDone || !query.includes(text)) return
    isDone = true
    await work()
  }
  return {
    ...tables,
    async run(statement, options) {
      await first(statement.query)
      return tables.run(statement, options)
    },
  }
}

test('if an older projector takes the old fold over meanwhile, the run fails and says so', async () => {
  const { there, here, take } = await openWorld(new Map<string, Fate>([['c', 'same']]))
  const takeOver = () =>
    there.tables.run(takeEpochStatement(there.databases, 'older', 0n, { overridesStop: true }))
  await expect(take({ tables: before(here.tables, '.stamp_floor', takeOver) })).rejects.toThrow(
    'another process took over the fold of the other tables',
  )
})

test('of two runs at once the later one succeeds, and no stamp is lost', async () => {
  const world = await openWorld(randomCampaigns(randomOf(`${seed}/two`), harmless))
  const tables = before(world.here.tables, '.stamp_floor (shard, reached)\n', () => world.take())
  await expect(world.take({ tables })).rejects.toThrow()
  await expectTaken(world)
})

test('a purge drops the ids and hashes that a killed run has left', async () => {
  const { there, here } = await openWorld(new Map<string, Fate>([['c', 'same']]))
  expect(await purgeStagedStamps(here, { isDry: false })).toEqual([])
  await stage([there], [here], 'killed')
  expect(await purgeStagedStamps(here, { isDry: true })).toMatchObject([{ done: 'drops 2 tables' }])
  expect(await purgeStagedStamps(here, { isDry: false })).toMatchObject([{ done: 'dropped 2 tables' }])
  expect(await listStaged(here)).toEqual([])
})

test('a rebuild that paused the fold before cannot swap any more', async () => {
  const { here, take } = await openWorld(new Map<string, Fate>([['c', 'changed']]))
  const permit = await createPermit(here.tables, here.databases, 1n)
  await take()
  expect(await isRevoked(here.tables, here.databases, permit)).toBe(true)
})
