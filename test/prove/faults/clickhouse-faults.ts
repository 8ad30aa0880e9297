/** The one ClickHouse is killed, silent or slow. */
import { setTimeout as delay } from 'node:timers/promises'
import { isCampaignFold, type TablesCall } from '../../support/clickhouse/faulty-tables.ts'
import { intBetween } from '../../support/runner/random.ts'
import { type Stage, sessionMs, silenceMs } from '../stage/stage.ts'
import { until } from '../stage/watch.ts'

/** ClickHouse is killed for longer than the session. */
export async function killClickHouse(stage: Stage): Promise<void> {
  await stage.recorder.disturbed('errors', async () => {
    await stage.clickHouse().kill()
    await delay(2 * sessionMs)
    await stage.restartClickHouse()
    await stage.untilBoth('/stats')
  })
}

/** ClickHouse accepts connections and answers nothing, for longer than the session and than the timeout of a statement. */
export async function silenceClickHouse(stage: Stage): Promise<void> {
  await stopClickHouse(stage, silenceMs + sessionMs)
}

/** ClickHouse stops while a fold runs, which so ends long after its stamp. */
export async function stopDuringFold(stage: Stage): Promise<void> {
  const { obstruct, random, foldMsMax } = stage
  let hasArrived = false
  const before = (call: TablesCall) => {
    hasArrived ||= isCampaignFold(call)
  }
  const release = obstruct({ before })
  // A moment counts.
  await until(() => hasArrived, 5)
  release()
  // A moment later it runs and has its stamp.
  await delay(intBetween(random('slow'), 2, 40))
  await stopClickHouse(stage, 2.4 * foldMsMax)
}

/** The rows of a fold come long after its stamp, and ClickHouse does not notice how long the statement takes. */
export async function slowFold({ obstruct, foldMsMax }: Stage): Promise<void> {
  let isSlowed = false
  const rewrite = (call: TablesCall) => {
    if (isSlowed || !isCampaignFold(call)) return call.text
    isSlowed = true
    return slowedDown(call.text, 3.6 * foldMsMax)
  }
  const release = obstruct({ rewrite })
  await until(() => isSlowed)
  release()
}

function slowedDown(fold: string, ms: number): string {
  const slow = fold
    .replace('\nWHERE if(fresh.', `\nWHERE sleep(${ms / 1_000}) = 0 AND if(fresh.`)
    .replace(
      /max_execution_time = [\d.]+/,
      'max_execution_time = 0, function_sleep_max_microseconds_per_block = 0',
    )
  if (!slow.includes('sleep(') || !slow.includes('max_execution_time = 0'))
    throw new Error('the fold reads otherwise')
  return slow
}

/** Accepts connections and answers nothing. */
function stopClickHouse(stage: Stage, ms: number): Promise<void> {
  return stage.recorder.disturbed('errors', async () => {
    stage.clickHouse().signal('SIGSTOP')
    await delay(ms)
    stage.clickHouse().signal('SIGCONT')
    await stage.untilBoth('/stats')
  })
}
