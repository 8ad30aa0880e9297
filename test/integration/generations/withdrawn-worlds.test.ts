/**
 * Random worlds in which entities are deleted, hidden and revoked before, during and after rebuilds, rollbacks and drops,
 * while the log forgets what it may and old events are appended again. What is withdrawn is never served, and what was hidden is shown by
 * a later version. A poller that asks for removals keeps no campaign that is gone, and no id is shown of one that was never public.
 *
 * PLEDGEVIEW_TEST_SEED repeats the worlds.
 */
import { expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { dropOthers, rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { VerificationFailed } from '../../../services/generations/verification.ts'
import { createSqlListSource } from '../../../services/query/lists/campaign-lists.ts'
import { obstructed } from '../../support/clickhouse/faulty-tables.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import {
  compactLog,
  emptyLog,
  isPromotion,
  openRebuildableModel,
  type RebuildableModel,
  type RebuildOptions,
} from '../../support/generations/rebuilds.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { intBetween, pick, type Random, randomOf } from '../../support/runner/random.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const worlds = 2
const stepsPerWorld = 4
const campaignIds = Array.from({ length: 20 }, (_, n) => `c${n}`)
const phases = ['reading log', 'folding', 'catching up', 'verifying', 'promoting'] as const

const model = useModelTables()

/** A live model, everything that happened in it, and how much of that each archive has. */
interface World {
  random: Random
  live: RebuildableModel
  events: ChangeEvent[]
  archives: number[]
  /** What happened, for the message of a failure. */
  story: string[]
  version: number
  /** The campaigns that were seen to be public, and what a poller holds: ids with their stamps. */
  seen: Set<string>
  copy: Map<string, string>
  since: number | null
}

/** A state of a random entity, or its deletion. So few ids that most of them meet every fate. */
function randomEvent(world: World, deletedShare: number): ChangeEvent {
  const { random } = world
  const version = ++world.version
  const campaign_id = pick(random, campaignIds)
  const isDeleted = random() < deletedShare
  const isShown = random() < 0.5
  const kind = random()
  if (kind < 0.4) {
    if (isDeleted) return { type: 'campaign', key: campaign_id, data: null }
    return campaignEvent({ campaign_id, version, status: isShown ? 'LIVE' : 'SUBMITTED' })
  }
  if (kind < 0.8) {
    const pledge_id = `p${intBetween(random, 1, 3)}`
    if (isDeleted) return { type: 'pledge', key: `${campaign_id}/${pledge_id}`, data: null }
    return pledgeEvent({ campaign_id, pledge_id, version, status: isShown ? 'ACTIVE' : 'CANCELLED' })
  }
  const key = `k${intBetween(random, 1, 15)}`
  if (isDeleted) return { type: 'api-key', key, data: null }
  return apiKeyEvent({ key, account_id: `of ${key}`, version, status: isShown ? 'ACTIVE' : 'REVOKED' })
}

/** `never` is a draft for ever. */
async function happen(world: World, count: number, deletedShare = 0.08): Promise<void> {
  const events = Array.from({ length: count }, () => randomEvent(world, deletedShare))
  const version = ++world.version
  return append(world, [...events, campaignEvent({ campaign_id: 'never', version, status: 'SUBMITTED' })])
}

async function append(world: World, events: readonly ChangeEvent[]): Promise<void> {
  world.events.push(...events)
  world.story.push(...events.map(({ key, data }) => (data === null ? `-${key}` : key)))
  await world.live.append(events)
  await world.live.settled()
  for (const id of (await shown(world)).keys()) world.seen.add(id)
}

/** Forgets what a compacted log may forget. It ends with other entities, so that every tombstone is forgotten. */
async function forget(world: World): Promise<void> {
  const version = ++world.version
  const last = [
    campaignEvent({ campaign_id: 'last', version }),
    pledgeEvent({ campaign_id: 'last', pledge_id: 'p', version }),
    apiKeyEvent({ key: 'last', account_id: 'last', version }),
  ]
  await append(world, last)
  compactLog(world.live)
  world.story.push('log compacted')
}

/** The entities that may be served, by the latest event of each. Versions grow in the order of events. */
function servable(events: readonly ChangeEvent[]): Set<string> {
  const names = new Set<string>()
  const deleted = new Set<string>()
  for (const { type, key, data } of events) {
    const name = `${type} ${key}`
    if (data === null) deleted.add(name)
    const isShown = data !== null && ['LIVE', 'ACTIVE'].includes(data.status)
    if (isShown && !deleted.has(name)) names.add(name)
    else names.delete(name)
  }
  return names
}

/** The entities that are served: public campaigns, pledges that count in a public campaign's totals, and active keys. */
async function served({ live: { tables, databases } }: World): Promise<Set<string>> {
  const { base, ledger, read } = databases
  // Not the view: the leader points it at this generation a moment after the promotion.
  const shown = `(SELECT campaign_id, pledge_count FROM ${read}.campaigns FINAL WHERE is_deleted = 0)`
  const rows = await tables.rows<{ name: string }>({
    query: `SELECT concat('campaign ', campaign_id) AS name FROM ${shown}
      UNION ALL
      SELECT concat('pledge ', campaign_id, '/', pledge_id) FROM ${ledger}.pledge_ledger FINAL WHERE counts
      UNION ALL
      SELECT concat('api-key ', api_key) FROM ${base}.api_keys FINAL WHERE is_active`,
  })
  const [totals] = await tables.rows<{ wrong: number }>({
    query: `SELECT countIf(shown.pledge_count != counted.pledges) AS wrong
      FROM ${shown} AS shown LEFT JOIN
      (SELECT campaign_id, count() AS pledges FROM ${ledger}.pledge_ledger FINAL WHERE counts GROUP BY campaign_id) AS counted
      ON counted.campaign_id = shown.campaign_id SETTINGS join_use_nulls = 0`,
  })
  return new Set([...rows.map(({ name }) => name), ...(totals?.wrong === 0 ? [] : ['wrong totals'])])
}

async function mustServeNothingWithdrawn(world: World, at: string): Promise<void> {
  const allowed = servable(world.events)
  const returned = [...(await served(world))].filter(name => !allowed.has(name))
  expect(returned, `${at}, after: ${world.story.join(', ')}`).toEqual([])
}

/** The public campaigns, with their stamps; those of `served`. */
async function shown({ live: { tables, databases } }: World, since = 0): Promise<Map<string, string>> {
  const rows = await tables.rows<{ id: string; at: string }>({
    query: `SELECT campaign_id AS id, toString(updated_at) AS at FROM ${databases.read}.campaigns FINAL
      WHERE is_deleted = 0 AND updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`,
    query_params: { since },
  })
  return new Map(rows.map(({ id, at }) => [id, at]))
}

/** The removals that it is told. Each campaign was public at some time, perhaps for too short a time to be seen. */
async function removals({ live: { tables, databases }, events, story }: World, since: number | null) {
  const source = createSqlListSource(tables, databases, { keptMs: 86_400_000, msMax: 60_000 })
  const { ids, asOf } = await source.removals(since)
  const told = ids.page(1_000, 0).map(entry => entry.split(' ') as [at: string, id: string])
  const wasPublic = new Set(events.flatMap(({ key, data }) => (data?.status === 'LIVE' ? [key] : [])))
  expect(told.filter(([, id]) => !wasPublic.has(id)).map(String), story.join(', ')).toEqual([])
  return { told, asOf }
}

/** What a consumer does: the removals first, and then the changes. */
async function poll(world: World): Promise<void> {
  const { told, asOf } = await removals(world, world.since)
  for (const [at, id] of told) {
    const held = world.copy.get(id)
    if (held !== undefined && Date.parse(`${held}Z`) < Number(at)) world.copy.delete(id)
  }
  for (const [id, at] of await shown(world, world.since ?? 0)) world.copy.set(id, at)
  world.since = Date.parse(asOf)
}

/** Everything that was seen and is not public any more is told, and nothing that is public. */
async function mustTellRemovals(world: World): Promise<void> {
  const told = new Set((await removals(world, null)).told.map(([, id]) => id))
  const public_ = new Set((await shown(world)).keys())
  expect(told.intersection(public_), world.story.join(', ')).toEqual(new Set())
  expect(world.seen.difference(public_).difference(told), world.story.join(', ')).toEqual(new Set())
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

/** Runs it with events and a forgetful log in one of its phases, and looks at the tables right after the swap. */
async function rebuild(world: World, options: RebuildOptions): Promise<void> {
  const { random, live } = world
  const busyPhase = phases[intBetween(random, 0, phases.length - 1)]
  world.story.push(`${options.kind ?? 'rebuild'} with events while ${busyPhase}`)
  let promotions = 0
  const tables = obstructed(live.tables, {
    async after({ text }) {
      if (!isPromotion(text)) return
      promotions++
      await live.databases.follow(live.tables)
      await mustServeNothingWithdrawn(world, 'after the promotion')
    },
  })
  try {
    await live.rebuild({
      ...options,
      tables,
      async onPhase(phase) {
        if (phase === 'verifying') await inventRemoval(world)
        if (phase !== busyPhase) return
        await happen(world, 12, 0.3)
        if (random() < 0.7) await forget(world)
        if (random() < 0.5) await poll(world)
      },
    })
    expect(promotions).toBeGreaterThan(0)
  } catch (error) {
    // The log has less than the live tables, and nobody has accepted that: the rebuild refuses, as it should.
    if (!(error instanceof VerificationFailed) || options.acceptsLoss) throw error
    world.story.push('refused')
    await dropOthers(live)
  }
}

/** The log loses everything, and gets the archive. */
async function appendAgain({ live, events, story }: World, archived: number): Promise<void> {
  emptyLog(live)
  await live.append(events.slice(0, archived))
  await live.settled()
  story.push('archive appended')
}

async function step(world: World): Promise<void> {
  const { random, live } = world
  await happen(world, intBetween(random, 5, 20))
  if (random() < 0.7) await poll(world)
  if (random() < 0.3)
    await live.tables.run({ query: `OPTIMIZE TABLE ${live.databases.read}.campaigns FINAL` })
  if (random() < 0.4) await forget(world)
  if (random() < 0.5) {
    world.archives.push(world.events.length)
    world.story.push('archived')
  }
  const status = await rebuildStatus(live)
  if (status?.isPreviousKept) {
    if (random() < 0.6) return rebuild(world, { kind: 'rollback', acceptsLoss: random() < 0.5 })
    await dropOthers(live)
    world.story.push('dropped')
  }
  if (random() < 0.7) await appendAgain(world, pick(random, world.archives))
  await rebuild(world, { acceptsLoss: random() < 0.7 })
}

test(`what is deleted, hidden or revoked is never served again, and a poller keeps nothing of it (seed ${seed})`, async () => {
  let removed = 0
  for (let n = 0; n < worlds; n++) {
    const live = await openRebuildableModel(model)
    const random = randomOf(seed, `withdrawals ${n}`)
    const world: World = {
      ...{ random, live, events: [], archives: [], story: [], version: 0 },
      ...{ seen: new Set(), copy: new Map(), since: null },
    }
    try {
      await happen(world, 90)
      world.archives.push(world.events.length)
      for (let count = 0; count < stepsPerWorld; count++) {
        await step(world)
        await live.settled()
        await mustServeNothingWithdrawn(world, 'at the end of a step')
        await mustTellRemovals(world)
      }
      await poll(world)
      await poll(world)
      expect(world.copy, world.story.join(', ')).toEqual(await shown(world))
      removed += world.seen.size - world.copy.size
      const version = ++world.version
      const shownAgain = campaignIds.map(campaign_id => campaignEvent({ campaign_id, version }))
      await append(world, shownAgain)
      const isCampaign = (name: string) => /^campaign c/.test(name)
      expect([...(await served(world))].filter(isCampaign).toSorted()).toEqual(
        [...servable(world.events)].filter(isCampaign).toSorted(),
      )
    } finally {
      await live.close()
    }
  }
  expect(removed).toBeGreaterThan(0)
}, 480_000)
