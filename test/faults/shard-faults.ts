/** One of two shards is killed, cut off or silent, or its clock steps back. */
import { expect } from 'vitest'
import type { Figures, Stage } from '../support/faults/stage.ts'
import { withMovedClock } from '../support/projector/stamp-clock.ts'
import { shownTitle, until, untilItMoves } from './watch.ts'

// The first answers the query services. The program's keys are there, too.
const first = 0
const other = 1
// The readers must have met the absence several times: whole lists, details and statistics. If a shard is silent, each of them waits
// for as long as a query may take.
const refusedMin = 12
const refusedInSilenceMin = 5
const clockBackMs = 30_000

/** kill -9 of either shard, each time until readers were refused. */
export async function killShards(stage: Stage): Promise<Figures> {
  let refused = 0
  for (const shard of [other, first]) {
    refused += await whileAway(
      stage,
      () => stage.killClickHouse(shard),
      () => stage.restartClickHouse(shard),
    )
    await untilAllMove(stage)
  }
  return { kills: 2, refused }
}

/**
 * The shards lose each other, but projectors reach both. Then the projectors lose one of them, too. At last this one gets what it is
 * asked to write, but its answers get lost.
 */
export async function cutShardOff(stage: Stage): Promise<Figures> {
  const links = stage.services.shards?.links ?? []
  expect(links).toHaveLength(2)
  const release = async () => {
    for (const link of links) link.release()
  }
  const cut = async () => {
    for (const link of links) link.cut()
  }
  let refused = await whileAway(stage, cut, release)
  await untilAllMove(stage)

  const unreachable = () => Promise.reject(new Error('cut off'))
  let reach = () => {}
  refused += await whileAway(
    stage,
    async () => {
      await cut()
      reach = stage.proxies[other]?.obstruct({ before: unreachable }) ?? reach
    },
    async () => {
      reach()
      await release()
    },
  )
  await untilAllMove(stage)

  refused += await whileAway(
    stage,
    async () => links[other]?.holdAnswers(),
    async () => {
      // What was held is lost.
      await cut()
      await release()
    },
    refusedInSilenceMin,
  )
  await untilAllMove(stage)
  return { cuts: 3, refused }
}

/**
 * A shard is killed, and its clock is behind when it runs again; later it is right again. The clock of a server cannot be set
 * here, so the statements that stamp on this shard get another one in the place of `now64`.
 */
export async function turnClockBack(stage: Stage): Promise<Figures> {
  let correct = () => {}
  const refused = await whileAway(
    stage,
    () => stage.killClickHouse(other),
    async () => {
      correct =
        stage.proxies[other]?.obstruct({ rewrite: ({ text }) => withMovedClock(text, -clockBackMs) }) ??
        correct
      await stage.restartClickHouse(other)
    },
  )
  await untilAllMove(stage)
  await untilMirrored(stage)
  await until(async () => (await clockSteps(stage, 'back')) > 0)
  correct()
  await until(async () => (await clockSteps(stage, 'forward')) > 0)
  await untilMirrored(stage)
  await untilAllMove(stage)
  return { steps: 2, refused }
}

/** A new campaign of each shard reaches the poller. */
async function untilMirrored({ traffic, tables, folded, mirror }: Stage): Promise<void> {
  const isOn = async (shard: number, id: string) => {
    const [row] = await (folded[shard]?.tables.rows<{ shard: number }>({
      query: 'SELECT toUInt8(cityHash64({id:String}) % {shards:UInt8}) AS shard',
      query_params: { id, shards: folded.length },
    }) ?? [])
    return row?.shard === shard
  }
  for (const shard of folded.keys()) {
    let history = traffic.newPublicHistory()
    while (!(await isOn(shard, history.id))) history = traffic.newPublicHistory()
    const { id, states } = history
    await traffic.say([{ type: 'campaign', key: id, data: states.at(0) ?? null }])
    await until(async () => (await shownTitle(tables, id)) !== undefined)
    await until(() => mirror.campaigns().has(id))
  }
}

/** Takes a shard away until readers were refused often enough, and brings it back. Returns how many were refused. */
async function whileAway(
  stage: Stage,
  away: () => Promise<unknown>,
  back: () => Promise<unknown>,
  least = refusedMin,
): Promise<number> {
  const refused = () => stage.client.statuses()[500] ?? 0
  const before = refused()
  await stage.withoutClickHouse(async () => {
    await away()
    await until(() => refused() >= before + least)
    await back()
    // The servers notice in their own time that they reach each other again.
    await until(async () => {
      const walks = await Promise.allSettled(stage.apiUrls.map(url => stage.walk(url)))
      return walks.every(({ status }) => status === 'fulfilled')
    })
  })
  return refused() - before
}

/** Every shard is folded again. */
async function untilAllMove({ folded, tables: log }: Stage): Promise<void> {
  await Promise.all(folded.map(({ tables }) => untilItMoves(tables, log)))
}

/** How often the projectors that run have noticed that a clock stepped. */
async function clockSteps({ places }: Stage, direction: 'back' | 'forward'): Promise<number> {
  const counts = places.map(async place => {
    const { opsUrl } = await place.ready()
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    const step = new RegExp(`^pledgeview_clock_steps_total\\{direction="${direction}"\\} (\\d+)`, 'm')
    return Number(step.exec(metrics)?.[1] ?? 0)
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
