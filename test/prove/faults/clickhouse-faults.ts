/** ClickHouse is killed, silent or slow; a shard is cut off, or its clock steps back. */
import { setTimeout as delay } from 'node:timers/promises'
import { isCampaignFold, type TablesCall } from '../../support/clickhouse/faulty-tables.ts'
import { withMovedClock } from '../../support/projector/stamp-clock.ts'
import { type Stage, sessionMs } from '../stage/stage.ts'
import { askOps, until } from '../stage/watch.ts'

// The first answers the query services. The program's keys are there, too.
const [first, other] = [0, 1]
// The readers must have met the absence several times: whole lists, details and statistics. If a server is silent, each of them waits
// for as long as a query may take.
const refusedMin = 12
const refusedInSilenceMin = 5
// More than the shard is away: a leader that sees its clock for the first time knows the time of the last stamp.
const clockBackMs = 600_000

/** The one server is killed, or accepts connections and answers nothing, for longer than the session and than a statement may take. */
export const ofOneServer = {
  killClickHouse: (stage: Stage) => kill(stage, first),
  silenceClickHouse: (stage: Stage) =>
    whileAway(
      stage,
      () => stage.clickHouse(first).signal('SIGSTOP'),
      () => stage.clickHouse(first).signal('SIGCONT'),
      () => untilRefused(stage, refusedInSilenceMin),
    ),
  slowFold,
}

export const ofShards = {
  killFirstShard: (stage: Stage) => kill(stage, first),
  killOtherShard: (stage: Stage) => kill(stage, other),
  /** The shards lose each other. */
  cutShards: (stage: Stage) => cut(stage, () => () => {}),
  /** And the projectors lose one of them, too. */
  cutShardOff: (stage: Stage) =>
    cut(stage, () => stage.obstruct({ before: () => Promise.reject(new Error('cut off')) }, other)),
  silenceShard,
  turnClockBack,
}

/** Takes something away for a while, and brings it back. Default: until readers were refused often enough, after kill -9. */
async function whileAway(
  stage: Stage,
  away: () => unknown,
  back: () => unknown,
  whileAbsent = () => untilRefused(stage, refusedMin),
): Promise<void> {
  await stage.recorder.disturbed('errors', async () => {
    await away()
    await whileAbsent()
    await back()
    // The servers notice in their own time that they reach each other again.
    await stage.untilBoth('/stats')
    await stage.untilBoth('/projects?limit=100')
  })
}

/** Longer than the session. */
async function untilRefused({ recorder }: Stage, least: number): Promise<void> {
  const refused = () => recorder.log.filter(entry => entry.kind === 'answer' && entry.status === 500).length
  const before = refused()
  await delay(2 * sessionMs)
  await until(() => refused() >= before + least)
}

function kill(stage: Stage, server: number): Promise<void> {
  return whileAway(
    stage,
    () => stage.clickHouse(server).kill(),
    () => stage.restartClickHouse(server),
  )
}

/** The rows of a fold come long after its stamp, and ClickHouse does not notice how long the statement takes. */
async function slowFold({ obstruct, foldMsMax }: Stage): Promise<void> {
  let fold = ''
  const slowed = () => slowedDown(fold, 3.6 * foldMsMax)
  const rewrite = (call: TablesCall) => {
    if (fold !== '' || !isCampaignFold(call)) return call.text
    fold = call.text
    return slowed()
  }
  const release = obstruct({ rewrite })
  await until(() => fold !== '')
  release()
  // To a projector, what a rewrite throws is a lost answer. A fold that cannot be slowed down ends the world.
  slowed()
}

/** The sleep is once a block of rows, and a fold of a world has one block. */
export function slowedDown(fold: string, ms: number): string {
  const slow = fold
    .replace('\nWHERE (', `\nWHERE sleep(${ms / 1_000}) = 0 AND (`)
    .replace(
      /max_execution_time = [\d.]+/,
      'max_execution_time = 0, function_sleep_max_microseconds_per_block = 0',
    )
  if (!slow.includes('sleep(') || !slow.includes('max_execution_time = 0'))
    throw new Error('the fold reads otherwise')
  return slow
}

/** The shards lose each other, and what else is cut. */
async function cut(stage: Stage, cutMore: () => () => void): Promise<void> {
  const links = linksOf(stage)
  let reach = () => {}
  await whileAway(
    stage,
    () => {
      for (const link of links) link.cut()
      reach = cutMore()
    },
    () => {
      reach()
      for (const link of links) link.release()
    },
  )
}

/** A shard gets what it is asked to write, but its answers get lost. */
async function silenceShard(stage: Stage): Promise<void> {
  const links = linksOf(stage)
  await whileAway(
    stage,
    () => links[other]?.holdAnswers(),
    () => {
      // What was held is lost.
      for (const link of links) link.cut()
      for (const link of links) link.release()
    },
    () => untilRefused(stage, refusedInSilenceMin),
  )
}

/**
 * A shard is killed, and its clock is behind when it runs again; later it is right again. The clock of a server cannot be set
 * here, so the statements that stamp on this shard get another one in the place of `now64`.
 */
async function turnClockBack(stage: Stage): Promise<void> {
  let correct = () => {}
  const haveSeen = async (direction: 'back' | 'forward') => {
    const step = new RegExp(`^pledgeview_clock_steps_total\\{direction="${direction}"\\} [1-9]`, 'm')
    const metrics = await Promise.all(stage.places.map(place => askOps(place, '/metrics')))
    return metrics.some(({ text }) => step.test(text))
  }
  await whileAway(
    stage,
    () => stage.clickHouse(other).kill(),
    () => {
      correct = stage.obstruct({ rewrite: ({ text }) => withMovedClock(text, -clockBackMs) }, other)
      return stage.restartClickHouse(other)
    },
  )
  await stage.untilItMoves()
  await until(() => haveSeen('back'))
  correct()
  await until(() => haveSeen('forward'))
}

function linksOf({ services }: Stage) {
  return services.shards?.links ?? []
}
