/**
 * Removals: a poller that asks for them keeps no campaign that is gone, through rebuilds, roll backs and rewrites of the tables, and no id is
 * shown of a campaign that was never public. PLEDGEVIEW_TEST_SEED repeats the worlds.
 */
import { expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { dropOthers, rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { createRemovals } from '../../../services/query/lists/campaign-lists.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { openRebuildableModel, type RebuildableModel } from '../../support/generations/rebuilds.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { intBetween, type Random, randomOf } from '../../support/runner/random.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const worlds = 2
const stepsPerWorld = 5
const phases = ['reading log', 'folding', 'catching up', 'verifying', 'promoting'] as const
const ids = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'never']

const model = useModelTables()

interface World {
  random: Random
  live: RebuildableModel
  version: number
  seen: Set<string>
  copy: Map<string, string>
  since: number | null
  story: string[]
}

async function shown({ live: { tables, databases } }: World): Promise<Map<string, string>> {
  const rows = await tables.rows<{ id: string; at: string }>({
    query: `SELECT campaign_id AS id, toString(updated_at) AS at FROM ${databases.views}.campaigns`,
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}

/** What a consumer does: the removals first, and then the changes. */
async function poll(world: World): Promise<void> {
  const { tables, databases } = world.live
  const removals = await createRemovals(tables, databases, { keptMs: 86_400_000, msMax: 60_000 })(world.since)
  for (const entry of removals.ids.page(1_000, 0)) {
    const [at = '', id = ''] = entry.split(' ')
    expect(world.seen, world.story.join(', ')).toContain(id)
    const held = world.copy.get(id)
    if (held !== undefined && Date.parse(`${held}Z`) < Number(at)) world.copy.delete(id)
  }
  const changed = await tables.rows<{ id: string; at: string }>({
    query: `SELECT campaign_id AS id, toString(updated_at) AS at FROM ${databases.views}.campaigns
            WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`,
    query_params: { since: world.since ?? 0 },
  })
  for (const { id, at } of changed) world.copy.set(id, at)
  world.since = Date.parse(removals.asOf)
}

const startOf = (id: string) => (id === 'never' ? 'SUBMITTED' : 'LIVE')

/** A new state of some campaigns, one each, so that whatever is public is seen to be. `never` is a draft for ever. */
async function happen(world: World): Promise<void> {
  const { random } = world
  const events = ids
    .filter(() => random() < 0.5)
    .map((campaign_id): ChangeEvent => {
      const version = ++world.version
      if (campaign_id === 'never')
        return campaignEvent({ campaign_id, version, status: startOf(campaign_id) })
      if (random() < 0.05) return { type: 'campaign', key: campaign_id, data: null }
      if (random() < 0.2) return pledgeEvent({ campaign_id, pledge_id: 'p', version })
      return campaignEvent({ campaign_id, version, status: random() < 0.5 ? 'LIVE' : 'SUSPENDED' })
    })
  world.story.push(...events.map(({ key, data }) => `${key} ${data && 'status' in data ? data.status : '-'}`))
  await world.live.append(events)
  await world.live.settled()
  for (const id of (await shown(world)).keys()) world.seen.add(id)
}

async function rebuild(world: World): Promise<void> {
  const busyPhase = phases[intBetween(world.random, 0, phases.length - 1)]
  const status = await rebuildStatus(world.live)
  const isRollback = status?.isPreviousKept && world.random() < 0.6
  if (status?.isPreviousKept && !isRollback) await dropOthers(world.live)
  world.story.push(`${isRollback ? 'roll back' : 'rebuild'} with events while ${busyPhase}`)
  await world.live.rebuild({
    ...(isRollback && { kind: 'rollback' }),
    async onPhase(phase) {
      if (phase === 'verifying') await inventRemoval(world)
      if (phase !== busyPhase) return
      // While it promotes, the live fold is held.
      if (phase !== 'promoting') await happen(world)
      if (world.random() < 0.5) await poll(world)
    },
  })
  await world.live.databases.follow(world.live.tables)
}

/** The new generation has it, as if it had folded a state that no reader saw. */
async function inventRemoval({ live: { tables, databases } }: World): Promise<void> {
  const [newest] = await tables.rows<{ read: string }>({
    query: `SELECT name AS read FROM system.databases WHERE startsWith(name, '${databases.base}_read_')
            ORDER BY toUInt32(splitByChar('_', name)[-1]) DESC LIMIT 1`,
  })
  await tables.run({
    query: `INSERT INTO ${newest?.read}.campaigns (campaign_id, updated_at, fold_id, is_deleted) SELECT 'never', now64(3), 1, 1`,
  })
}

async function rewrite({ live: { tables, databases } }: World): Promise<void> {
  await tables.run({ query: `OPTIMIZE TABLE ${databases.read}.campaigns FINAL` })
}

/** Everything that was seen and is not public any more, and nothing else. */
async function mustBeExact(world: World): Promise<void> {
  const { tables, databases } = world.live
  const removals = await createRemovals(tables, databases, { keptMs: 86_400_000, msMax: 60_000 })(null)
  const named = removals.ids.page(1_000, 0).map(entry => entry.split(' ')[1] ?? '')
  const public_ = await shown(world)
  const gone = [...world.seen].filter(id => !public_.has(id))
  expect(named.toSorted(), world.story.join(', ')).toEqual(gone.toSorted())
}

test(`a poller keeps nothing that is gone, and no id is shown that was never public (seed ${seed})`, async () => {
  let removed = 0
  for (let n = 0; n < worlds; n++) {
    const live = await openRebuildableModel(model)
    const random = randomOf(seed, `removals ${n}`)
    const world: World = {
      ...{ random, live, version: 0, since: null, story: [] },
      ...{ seen: new Set(), copy: new Map() },
    }
    try {
      await live.append(ids.map(campaign_id => campaignEvent({ campaign_id, status: startOf(campaign_id) })))
      world.version = 1
      for (let count = 0; count < stepsPerWorld; count++) {
        await happen(world)
        if (random() < 0.7) await poll(world)
        if (random() < 0.3) await rewrite(world)
        if (count % 2 === 1) await rebuild(world)
        await live.settled()
        for (const id of (await shown(world)).keys()) world.seen.add(id)
        await mustBeExact(world)
      }
      await poll(world)
      await poll(world)
      expect(world.copy, world.story.join(', ')).toEqual(await shown(world))
      removed += world.seen.size - world.copy.size
    } finally {
      await live.close()
    }
  }
  expect(removed).toBeGreaterThan(0)
}, 480_000)
