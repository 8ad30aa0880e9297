/** Kafka and ClickHouse become unavailable or slow, and return. */
import { setTimeout as delay } from 'node:timers/promises'
import { isCampaignFold } from '../../support/clickhouse/faulty-tables.ts'
import { column } from '../../support/projector/fold-records.ts'
import { intBetween } from '../../support/runner/random.ts'
import { type Stage, sessionMs, silenceMs } from '../stage/stage.ts'
import { currentOf, until, untilItMoves } from '../stage/watch.ts'

const slowMsMax = 300
const refusedMin = 12

export async function killBroker({ services, tables }: Stage): Promise<void> {
  await services.kafka.halt()
  await delay(sessionMs)
  await services.kafka.resume()
  await untilItMoves(tables)
}

/** ClickHouse is killed for longer than the session. */
export async function killClickHouse(stage: Stage): Promise<void> {
  await stage.recorder.disturbed('errors', async () => {
    await stage.killClickHouse()
    await delay(2 * sessionMs)
    await stage.restartClickHouse()
    await stage.untilBoth('/stats', () => true)
  })
  await untilItMoves(stage.tables)
}

/** ClickHouse accepts connections and answers nothing, for longer than the session and than the timeout of a statement. */
export async function silenceClickHouse(stage: Stage): Promise<void> {
  await stopClickHouse(stage, silenceMs + sessionMs)
  await untilItMoves(stage.tables)
}

/**
 * The disks are full: each server has to keep more free than it has, so that ClickHouse itself refuses every insert. Nobody who reads
 * notices.
 */
export async function fillDisks({ folded, tables: log }: Stage): Promise<void> {
  const current = Object.values(await currentOf(log)).map(name => `'${name}'`)
  const own = `database IN (${current.join(', ')}) AND engine LIKE '%MergeTree'`
  async function alterAll(change: string): Promise<void> {
    for (const { tables } of folded) {
      const names = await column(
        tables,
        `SELECT concat(database, '.', name) AS value FROM system.tables WHERE ${own}`,
      )
      for (const name of names) await tables.run({ query: `ALTER TABLE ${name} ${change}` })
    }
  }
  const refused = async () => {
    const counts = "SELECT sum(value) AS value FROM system.errors WHERE name = 'NOT_ENOUGH_SPACE'"
    const all = await Promise.all(folded.map(({ tables }) => column(tables, counts)))
    return all.flat().reduce<number>((sum, count) => sum + Number(count), 0)
  }
  const before = await refused()
  await alterAll('MODIFY SETTING min_free_disk_bytes_to_perform_insert = 1000000000000000')
  await until(async () => (await refused()) >= before + refusedMin)
  await alterAll('RESET SETTING min_free_disk_bytes_to_perform_insert')
  await untilItMoves(log)
}

/** Each statement of the projectors takes longer on its way, and on its way back. */
export async function slowNetworkDown({ proxies, random, tables }: Stage): Promise<void> {
  const next = random('network')
  const wait = () => delay(intBetween(next, 0, slowMsMax))
  const releases = proxies.map(proxy => proxy.obstruct({ before: wait, after: wait }))
  for (let move = 0; move < 3; move++) await untilItMoves(tables)
  for (const release of releases) release()
}

/** The answers of some statements are lost on their way. They have run. */
export async function loseAnswers({ proxies, random, tables }: Stage): Promise<void> {
  const next = random('lost')
  let lost = 0
  const lose = () => {
    if (next() > 0.1) return
    lost++
    throw new Error('the answer is lost')
  }
  const releases = proxies.map(proxy => proxy.obstruct({ after: lose }))
  await until(() => lost >= 20)
  for (const release of releases) release()
  await untilItMoves(tables)
}

/** ClickHouse stops while a fold runs, which so ends long after its stamp. */
export async function stopDuringFold(stage: Stage): Promise<void> {
  const { proxy, random, tables, foldMsMax } = stage
  const arrived = Promise.withResolvers<void>()
  const watch = proxy.obstruct({ before: call => void (isCampaignFold(call) && arrived.resolve()) })
  await arrived.promise
  watch()
  // A moment later it runs and has its stamp.
  await delay(intBetween(random('slow'), 2, 40))
  await stopClickHouse(stage, 2.4 * foldMsMax)
  await untilItMoves(tables)
}

/** The rows of a fold come long after its stamp, and ClickHouse does not notice how long the statement takes. */
export async function slowFold({ proxies, tables, foldMsMax, settled }: Stage): Promise<void> {
  let slowed = 0
  const releases = proxies.map(proxy =>
    proxy.obstruct({
      rewrite: call => {
        if (slowed > 0 || !isCampaignFold(call)) return call.text
        slowed++
        return slowedDown(call.text, 3.6 * foldMsMax)
      },
    }),
  )
  await until(() => slowed > 0)
  for (const release of releases) release()
  await untilItMoves(tables)
  await settled()
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
    stage.signalClickHouse('SIGSTOP')
    await delay(ms)
    stage.signalClickHouse('SIGCONT')
    await stage.untilBoth('/stats', () => true)
  })
}
