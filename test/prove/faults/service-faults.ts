/** Kafka that is away, full disks, and a network that is slow or loses answers. */
import { setTimeout as delay } from 'node:timers/promises'
import { column } from '../../support/projector/fold-records.ts'
import { intBetween } from '../../support/runner/random.ts'
import { type Stage, sessionMs } from '../stage/stage.ts'
import { currentOf, until, untilItMoves } from '../stage/watch.ts'

const slowMsMax = 300
const refusedMin = 12
const lostMin = 20

export async function killBroker({ services }: Stage): Promise<void> {
  await services.kafka.halt()
  await delay(sessionMs)
  await services.kafka.resume()
}

/**
 * The disks are full: each server has to keep more free than it has, so that ClickHouse itself refuses every insert. Nobody who reads
 * notices.
 */
export async function fillDisks({ folded, tables: log }: Stage): Promise<void> {
  const current = Object.values(await currentOf(log)).map(name => `'${name}'`)
  const own = `SELECT concat(database, '.', name) AS value FROM system.tables
               WHERE database IN (${current.join(', ')}) AND engine LIKE '%MergeTree'`
  const refusals = "SELECT sum(value) AS value FROM system.errors WHERE name = 'NOT_ENOUGH_SPACE'"
  async function alterAll(change: string): Promise<void> {
    for (const { tables } of folded) {
      for (const name of await column(tables, own))
        await tables.run({ query: `ALTER TABLE ${name} ${change}` })
    }
  }
  async function refused(): Promise<number> {
    const counts = await Promise.all(folded.map(({ tables }) => column(tables, refusals)))
    return counts.flat().reduce<number>((sum, count) => sum + Number(count), 0)
  }
  const before = await refused()
  await alterAll('MODIFY SETTING min_free_disk_bytes_to_perform_insert = 1000000000000000')
  await until(async () => (await refused()) >= before + refusedMin)
  await alterAll('RESET SETTING min_free_disk_bytes_to_perform_insert')
}

/** Each statement of the projectors takes longer on its way, and on its way back. */
export async function slowNetworkDown({ obstruct, random, tables }: Stage): Promise<void> {
  const next = random('network')
  const wait = () => delay(intBetween(next, 0, slowMsMax))
  const release = obstruct({ before: wait, after: wait })
  for (let move = 0; move < 3; move++) await untilItMoves(tables)
  release()
}

/** The answers of some statements are lost on their way. They have run. */
export async function loseAnswers({ obstruct, random }: Stage): Promise<void> {
  const next = random('lost')
  let lost = 0
  const lose = () => {
    if (next() > 0.1) return
    lost++
    throw new Error('the answer is lost')
  }
  const release = obstruct({ after: lose })
  await until(() => lost >= lostMin)
  release()
}
