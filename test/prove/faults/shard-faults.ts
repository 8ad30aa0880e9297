/** One of two shards is killed, cut off or silent, or its clock steps back. */
import { withMovedClock } from '../../support/projector/stamp-clock.ts'
import type { Stage } from '../stage/stage.ts'
import { askOps, until } from '../stage/watch.ts'

// The first answers the query services. The program's keys are there, too.
const first = 0
const other = 1
// The readers must have met the absence several times: whole lists, details and statistics. If a shard is silent, each of them waits
// for as long as a query may take.
const refusedMin = 12
const refusedInSilenceMin = 5
const clockBackMs = 30_000

export const killFirstShard = (stage: Stage): Promise<void> => killShard(stage, first)
export const killOtherShard = (stage: Stage): Promise<void> => killShard(stage, other)

/** kill -9, until readers were refused. */
async function killShard(stage: Stage, shard: number): Promise<void> {
  await whileAway(
    stage,
    () => stage.clickHouse(shard).kill(),
    () => stage.restartClickHouse(shard),
  )
}

/** The shards lose each other. With `isUnreachable`, the projectors lose one of them, too. */
export const cutShards = (stage: Stage): Promise<void> => cut(stage, false)
export const cutShardOff = (stage: Stage): Promise<void> => cut(stage, true)

async function cut(stage: Stage, isUnreachable: boolean): Promise<void> {
  const links = linksOf(stage)
  let reach = () => {}
  await whileAway(
    stage,
    async () => {
      for (const link of links) link.cut()
      const before = () => Promise.reject(new Error('cut off'))
      if (isUnreachable) reach = stage.obstruct({ before }, other)
    },
    async () => {
      reach()
      for (const link of links) link.release()
    },
  )
}

/** A shard gets what it is asked to write, but its answers get lost. */
export async function silenceShard(stage: Stage): Promise<void> {
  const links = linksOf(stage)
  await whileAway(
    stage,
    async () => links[other]?.holdAnswers(),
    async () => {
      // What was held is lost.
      for (const link of links) link.cut()
      for (const link of links) link.release()
    },
    refusedInSilenceMin,
  )
}

/**
 * A shard is killed, and its clock is behind when it runs again; later it is right again. The clock of a server cannot be set
 * here, so the statements that stamp on this shard get another one in the place of `now64`.
 */
export async function turnClockBack(stage: Stage): Promise<void> {
  let correct = () => {}
  await whileAway(
    stage,
    () => stage.clickHouse(other).kill(),
    async () => {
      correct = stage.obstruct({ rewrite: ({ text }) => withMovedClock(text, -clockBackMs) }, other)
      await stage.restartClickHouse(other)
    },
  )
  await stage.untilAllMove()
  await until(async () => (await clockSteps(stage, 'back')) > 0)
  correct()
  await until(async () => (await clockSteps(stage, 'forward')) > 0)
}

function linksOf({ services }: Stage) {
  return services.shards?.links ?? []
}

/** Takes a shard away until readers were refused often enough, and brings it back. */
async function whileAway(
  { recorder, untilBoth }: Stage,
  away: () => Promise<unknown>,
  back: () => Promise<unknown>,
  least = refusedMin,
): Promise<void> {
  const refused = () => recorder.log.filter(entry => entry.kind === 'answer' && entry.status === 500).length
  const before = refused()
  await recorder.disturbed('errors', async () => {
    await away()
    await until(() => refused() >= before + least)
    await back()
    // The servers notice in their own time that they reach each other again.
    await untilBoth('/stats')
    await untilBoth('/projects?limit=100')
  })
}

/** How often the projectors that run have noticed that a clock stepped. */
async function clockSteps({ places }: Stage, direction: 'back' | 'forward'): Promise<number> {
  const step = new RegExp(`^pledgeview_clock_steps_total\\{direction="${direction}"\\} (\\d+)`, 'm')
  const metrics = await Promise.all(places.map(place => askOps(place, '/metrics')))
  return metrics.reduce((sum, { text }) => sum + Number(step.exec(text)?.[1] ?? 0), 0)
}
