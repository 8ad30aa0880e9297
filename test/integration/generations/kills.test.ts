/**
 * A rebuild is killed before or after any of its statements, several times, while events arrive. It continues where it was.
 * In the end the model has what the events say, with the stamps that it had.
 *
 * PLEDGEVIEW_TEST_SEED repeats the places of the kills.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Tables } from '../../../services/tables/port.ts'
import { obstructed } from '../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../support/events/model.ts'
import { pledgeEvent } from '../../support/events/sample-events.ts'
import {
  openRebuildableModel,
  phaseIn,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../support/generations/rebuilds.ts'
import { foldFaults, noFoldFaults } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { intBetween, randomOf } from '../../support/runner/random.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const rebuilds = 3
const killsPerRebuild = 5
const statementMax = 5
// A promotion has more of them.
const statementOfPromotionMax = 40

const model = useModelTables()

/** Where a kill happens: at a numbered statement in one of these phases. */
const places = ['reading log', 'folding', 'catching up', 'verifying', 'promoting'] as const

interface Kill {
  place: (typeof places)[number]
  statement: number
  /** Whether ClickHouse has run the statement. */
  isAfter: boolean
}

/** Tables of a process that dies at this place and never runs a statement again. */
function mortal(tables: Tables, { place, statement, isAfter }: Kill): Tables & { hasDied(): boolean } {
  let at: string | undefined
  let count = 0
  let isDead = false
  const dieIf = (mustDie: boolean) => {
    isDead ||= mustDie
    if (isDead) throw new Error('killed')
  }
  const dying = obstructed(tables, {
    before() {
      if (at === place) count++
      dieIf(!isAfter && at === place && count >= statement)
    },
    after: () => dieIf(isAfter && at === place && count >= statement),
  })
  return {
    ...dying,
    async insert(insert) {
      at = phaseIn(insert) ?? at
      await dying.insert(insert)
    },
    hasDied: () => isDead,
  }
}

/** Kills a rebuild several times, and then lets it end. Resolves with the places of its deaths. */
async function rebuildWithKills(live: RebuildableModel, kills: readonly Kill[]): Promise<string[]> {
  const deaths: string[] = []
  for (const kill of kills) {
    const tables = mortal(live.tables, kill)
    const outcome = await live.rebuild({ tables }).catch(error => error)
    if (tables.hasDied()) {
      deaths.push(`${kill.place} (${kill.statement}, ${kill.isAfter ? 'after' : 'before'})`)
    } else {
      if (outcome instanceof Error) throw outcome
      return deaths
    }
  }
  await live.rebuild()
  return deaths
}

test(`a rebuild that is killed anywhere continues, and nothing is lost or stamped (seed ${seed})`, async () => {
  const random = randomOf(seed, 'rebuild kills')
  const died: string[] = []
  for (let n = 0; n < rebuilds; n++) {
    const live = await openRebuildableModel(model, { hurry: 20 })
    try {
      const events = platformHistory(25)
      await live.append(events)
      await live.settled()
      const stamps = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
      let isOver = false
      const traffic = (async () => {
        for (let pledge = 0; !isOver; pledge++) {
          const event = pledgeEvent({ campaign_id: `c${1 + (pledge % 3)}`, pledge_id: `more${pledge}` })
          events.push(event)
          await live.append([event])
          await delay(20)
        }
      })()
      // Every place has its turn.
      const kills = Array.from({ length: killsPerRebuild }, (_, kill) => {
        const place = places[(n * killsPerRebuild + kill) % places.length] ?? 'promoting'
        const statement = intBetween(
          random,
          1,
          place === 'promoting' ? statementOfPromotionMax : statementMax,
        )
        return { place, statement, isAfter: random() < 0.5 }
      }).toSorted((a, b) => places.indexOf(a.place) - places.indexOf(b.place))
      const deaths = await rebuildWithKills(live, kills)
      isOver = true
      await traffic
      console.log(`killed ${deaths.join(', ')}`)
      await live.settled()
      died.push(...deaths)
      expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
      const changed = (await stampsOf(live)).filter(({ id, at }) => stamps.get(id) !== at).map(({ id }) => id)
      expect(changed).toEqual(['c1', 'c2', 'c3'])
      // The promotion takes epochs, too.
      expect({ ...(await foldFaults(live.tables, live.databases)), epochs: [] }).toEqual(noFoldFaults)
    } finally {
      await live.close()
    }
  }
  // A place with few statements may be over before its kill.
  const hit = new Set(died.map(death => death.split(' (')[0]))
  expect([...places].filter(place => !hit.has(place)).length).toBeLessThanOrEqual(1)
  // It takes up to two minutes beside other suites. Only a hang takes this long.
}, 480_000)
