/** What the generation log decides: one rebuild at a time and its end, what is dropped or lost, and where the next one begins. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import {
  AttemptLost,
  noteDropped as dropIfNotCurrent,
  promoteGeneration,
  takeAttempt,
} from '../../../services/generations/attempts.ts'
import { checkDisk } from '../../../services/generations/begin.ts'
import { dropOthers, rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { generationOf, readCurrent, writeRow } from '../../../services/tables/generation-log.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { obstructed } from '../../support/clickhouse/faulty-tables.ts'
import {
  foundGenerations,
  generationsOf,
  isPromotion,
  type RebuildableModel,
} from '../../support/generations/rebuilds.ts'
import { useRebuildable } from '../../support/generations/use-rebuildable.ts'
import { column } from '../../support/projector/fold-records.ts'

let live: RebuildableModel
useRebuildable(5, opened => {
  live = opened
})

describe('a running rebuild', () => {
  test('refuses a second rebuild and a drop; interrupted, a drop leaves nothing of it', async () => {
    const reached = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const slow = obstructed(live.tables, {
      async before(call) {
        if (!call.text.includes('shown_pledges')) return
        reached.resolve()
        await goOn.promise
      },
    })
    const interrupt = new AbortController()
    const first = live.rebuild({ isAlone: false, tables: slow, signal: interrupt.signal })
    first.catch(() => {})
    await reached.promise
    await expect(live.rebuild({ isAlone: false })).rejects.toThrow('a rebuild is running')
    await expect(dropOthers(live)).rejects.toThrow('a rebuild is running')
    interrupt.abort(new Error('it was interrupted'))
    goOn.resolve()
    await expect(first).rejects.toThrow('interrupted')
    await dropOthers(live)
    expect(await generationsOf(live)).toHaveLength(1)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'dropped', isPreviousKept: false })
    await expect(dropOthers(live)).rejects.toThrow('there are no tables but')
    // One that is killed while it makes its databases has registered them before: a drop finds them.
    const killed = obstructed(live.tables, {
      after({ text }) {
        if (text.startsWith('CREATE DATABASE')) throw new Error('it was killed')
      },
    })
    await expect(live.rebuild({ tables: killed })).rejects.toThrow('killed')
    expect(await generationsOf(live)).toEqual([1, 3])
    await dropOthers(live)
    expect(await foundGenerations(live)).toEqual([1])
  })
})

describe('a clock of ClickHouse that steps back by an hour while a rebuild runs', () => {
  /** As if the heartbeats until now had been sent by a clock that was ahead. */
  async function stepBack(): Promise<void> {
    const log = `${live.databases.base}.generation_log`
    await live.tables.run({
      query: `INSERT INTO ${log} SELECT * REPLACE (written_at + INTERVAL 1 HOUR AS written_at) FROM ${log} WHERE kind = 'beat'`,
    })
  }

  test('keeps no process that is dead alive: ten seconds after its last heartbeat the next one may take it over, and hides none of its phases', async () => {
    let isDead = false
    const die = () => {
      if (isDead) throw new Error('it was killed')
    }
    const killed = live.rebuild({
      tables: obstructed(live.tables, { before: die }),
      async onPhase(phase) {
        if (phase !== 'folding') return
        await stepBack()
        isDead = true
        die()
      },
    })
    await expect(killed).rejects.toThrow('killed')
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'folding', isAlive: false })
    const signs: unknown[] = []
    await live.rebuild({
      isAlone: false,
      async onPhase(phase) {
        if (phase === 'folding') await stepBack()
        const query = `SELECT toString(max(written_at)) AS value FROM ${live.databases.base}.generation_log WHERE attempt = 2`
        signs.push(...(await column(live.tables, query)))
      },
    })
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'rebuilt', isAlive: false, ageMs: 0 })
    // The sign by which a fold worker sees that a promotion lives (attempts.ts).
    expect(signs.length).toBeGreaterThan(3)
    expect(new Set(signs).size).toBe(signs.length)
  })
})

describe('a rebuild that another process took over', () => {
  test('does not begin its next step', async () => {
    const log = { tables: live.tables, base: live.databases.base }
    const phases: string[] = []
    const run = live.rebuild({
      async onPhase(phase) {
        phases.push(phase)
        if (phase === 'reading log') await takeAttempt(log, 'another', { sleep, random: Math.random })
      },
    })
    await expect(run).rejects.toBeInstanceOf(AttemptLost)
    expect(phases).toEqual(['preparing', 'reading log'])
  })
})

test('an attempt promotes nothing after a later one, or if another generation became current, and does not drop the current one', async () => {
  const log = { tables: live.tables, base: live.databases.base }
  const take = async (run: string) => ({
    attempt: await takeAttempt(log, run, { sleep, random: Math.random }),
    run,
  })
  const rows = () => live.tables.rows({ query: `SELECT * FROM ${log.base}.generation_log ORDER BY ALL` })
  const former = await take('former')
  const own = await take('own')
  const before = await rows()
  for (const work of [
    () => promoteGeneration(log, { ...former, from: 1, to: 2 }),
    () => promoteGeneration(log, { ...own, from: 3, to: 2 }),
    () => dropIfNotCurrent(log, { ...own, generation: 1 }),
  ]) {
    await expect(work()).rejects.toBeInstanceOf(AttemptLost)
    expect(await rows()).toEqual(before)
  }
})

test('a generation that is noted as dropped while a rollback to it runs is not promoted, one that is current loses no table, and a late answer brings none from before back', async () => {
  const [asked, goOn] = [1, 2].map(() => Promise.withResolvers<void>())
  const late = live.databases.follow(
    obstructed(live.tables, {
      async after() {
        asked?.resolve()
        await goOn?.promise
      },
    }),
  )
  await asked?.promise
  const noteDropped = (generation: number) =>
    writeRow({ tables: live.tables, base: live.databases.base }, { kind: 'dropped', generation })
  await live.rebuild()
  await live.databases.follow(live.tables)
  goOn?.resolve()
  await late
  expect(live.databases.generation).toBe(2)
  const tables = obstructed(live.tables, {
    async before({ text }) {
      if (isPromotion(text)) await noteDropped(1)
    },
  })
  await expect(live.rebuild({ kind: 'rollback', tables })).rejects.toBeInstanceOf(AttemptLost)
  expect(await readCurrent(live.tables, live.databases.base)).toBe(2)

  await noteDropped(2)
  await dropOthers(live)
  expect(await generationsOf(live)).toEqual([2])
  await live.rebuild({ isDry: true })
  expect(await generationsOf(live)).toEqual([2])
})

test('a drop that is interrupted is no end of an open rebuild, which goes on with another generation; it is told, and ended by the next one', async () => {
  const interrupted = () =>
    dropOthers({
      ...live,
      tables: obstructed(live.tables, {
        before({ text }) {
          if (text.startsWith('DROP DATABASE')) throw new Error('it was interrupted')
        },
      }),
    })
  await expect(killedWhileVerifying()).rejects.toThrow('killed')
  await expect(interrupted()).rejects.toThrow('interrupted')
  await live.rebuild()
  expect(await generationsOf(live)).toEqual([1, 3])

  await expect(interrupted()).rejects.toThrow('interrupted')
  expect(await rebuildStatus(live)).toMatchObject({
    phase: 'rebuilt',
    isPreviousKept: false,
    isHalfDropped: true,
  })
  await dropOthers(live)
  expect(await generationsOf(live)).toEqual([3])
  expect(await rebuildStatus(live)).toMatchObject({ phase: 'dropped', isHalfDropped: false })
})

describe('a backup that has only the current generation, and is restored', () => {
  async function restore({ lost, left }: { lost: number; left: number }): Promise<void> {
    await live.stopProjector()
    const { ledger, read } = generationOf(live.databases, lost)
    for (const name of [ledger, read]) await live.tables.run({ query: `DROP DATABASE ${name} SYNC` })
    await migrate(live.tables, live.databases)
    expect(await foundGenerations(live)).toEqual([left])
  }

  test('has nothing of an unfinished rebuild, which begins again; and no previous tables, which are not made empty: what needs them is refused until a drop', async () => {
    await expect(killedWhileVerifying()).rejects.toThrow('killed')
    await restore({ lost: 2, left: 1 })
    await live.startProjector()
    await live.rebuild()
    expect(await generationsOf(live)).toEqual([1, 3])

    await live.settled()
    await restore({ lost: 1, left: 3 })
    expect(await rebuildStatus(live)).toMatchObject({ isPreviousKept: false })
    for (const kind of ['rollback', 'rebuild'] as const) {
      await expect(live.rebuild({ kind })).rejects.toThrow(
        'not in the backup that was restored: give them up',
      )
    }
    await dropOthers(live)
    await live.rebuild()
    expect(await generationsOf(live)).toEqual([3, 4])
  })

  test('of before a rebuild, without one of the current databases, is refused, and nothing is made', async () => {
    await live.rebuild()
    await live.stopProjector()
    const current = generationOf(live.databases, 2)
    for (const name of [current.ledger, current.read]) {
      await live.tables.run({ query: `DROP DATABASE ${name} SYNC` })
      const found = await foundGenerations(live)
      await expect(migrate(live.tables, live.databases)).rejects.toThrow(
        `names a current generation whose databases are not here: ${name}. Restore them from a backup that has them, or drop all databases`,
      )
      expect(await foundGenerations(live)).toEqual(found)
      const query = 'SELECT name FROM system.databases WHERE name = {name:String}'
      expect(await live.tables.rows({ query, query_params: { name } })).toEqual([])
      await live.tables.run({ query: `CREATE DATABASE ${name}` })
    }
  })
})

test('a rebuild that begins again after twelve hours forgets the consumer of the one before', async () => {
  await expect(killedWhileVerifying()).rejects.toThrow('killed')
  const consumers = () => {
    const file = new DatabaseSync(live.journal, { readOnly: true })
    const rows = file.prepare('SELECT consumer FROM watermarks ORDER BY consumer').all()
    file.close()
    return rows.map(row => row.consumer)
  }
  expect(consumers()).toEqual(['generation-2', 'projector'])
  const log = `${live.databases.base}.generation_log`
  await live.tables.run({
    query: `INSERT INTO ${log} SELECT * REPLACE (written_at - INTERVAL 13 HOUR AS written_at) FROM ${log} WHERE kind = 'beat'`,
  })
  await live.tables.run({
    query: `ALTER TABLE ${log} DELETE WHERE kind = 'beat' AND written_at > now() - INTERVAL 1 HOUR SETTINGS mutations_sync = 2`,
  })
  await live.rebuild()
  expect(await generationsOf(live)).toEqual([1, 3])
  expect(consumers()).toEqual(['projector'])
})

test('the room for new tables is that on the disks of the current ones, whatever other disks the server has', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pledgeview-full-disk-'))
  const open = (kept: number) => {
    const backups = { type: 'local', path: `${directory}/backups/`, keep_free_space_bytes: kept }
    return openOwnTables({ directory, more: { storage_configuration: { disks: { backups } } } })
  }
  const ledger = 'on_default'
  const read = 'on_backups'
  const before = await open(0)
  for (const name of [ledger, read]) {
    await before.tables.run({ query: `CREATE DATABASE ${name}` })
    await before.tables.run({
      query: `CREATE TABLE ${name}.t ENGINE = MergeTree ORDER BY n SETTINGS disk = '${name.slice(3)}' AS SELECT 1 AS n`,
    })
  }
  await before.close()
  // No byte of the disk for backups is free any more.
  const { tables, close } = await open(Number.MAX_SAFE_INTEGER)
  const databases = { ...live.databases, ledger, read: ledger }
  await checkDisk({ tables, databases })
  await expect(checkDisk({ tables, databases: { ...databases, read } })).rejects.toThrow(
    "only 0.0 MB are free on ClickHouse's disk backups",
  )
  await close()
  await rm(directory, { recursive: true })
})

function killedWhileVerifying(): Promise<unknown> {
  return live.rebuild({
    async onPhase(phase) {
      if (phase === 'verifying') throw new Error('it was killed')
    },
  })
}
