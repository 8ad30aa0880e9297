/** A rebuild beside live tables: what it leaves unchanged, what it changes, and what stops it. Its promotion is in promotion.test.ts. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AttemptLost, takeAttempt } from '../../../services/generations/attempts.ts'
import { checkDisk, RebuildRefused } from '../../../services/generations/begin.ts'
import { RebuildInProgress } from '../../../services/generations/rebuild-log.ts'
import { dropOthers, rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { VerificationFailed } from '../../../services/generations/verification.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import {
  generationOf,
  readCurrent,
  readGenerations,
  standingGenerations,
  writeRow,
} from '../../../services/tables/generations.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { obstructed } from '../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../support/events/model.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { damage, inventedCampaign, lostCampaign, spoiltTitle } from '../../support/generations/damage.ts'
import {
  emptyLog,
  isPromotion,
  isStamps,
  openRebuildableModel,
  platformHistory,
  type RebuildableModel,
  stampsOf,
} from '../../support/generations/rebuilds.ts'
import { column, restTables } from '../../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { keptRejects } from '../../support/projector/reject-filters.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

const model = useModelTables()
let live: RebuildableModel

beforeEach(async () => {
  live = await openRebuildableModel(model)
})
afterEach(() => live.close())

describe('the rejects of a rebuild', () => {
  test('are not stored again: a dry run stores none, and a rebuild stores only those that are new, once', async () => {
    await live.append(platformHistory(5))
    const bad = Array.from({ length: 19 }, (_, n) => ({
      topic: 'pledges' as const,
      key: Buffer.from(`c1/bad${n}`),
      value: Buffer.from('no event'),
    }))
    await live.writer.append(bad)
    await live.settled()
    const known = await rejects()
    expect(known).toHaveLength(19)
    await live.rebuild({ isDry: true })
    await live.rebuild()
    await live.rebuild({ kind: 'rollback' })
    expect(await rejects()).toEqual(known)

    // To a rebuild this one is new, as if only a newer rule refused it.
    await live.tables.run({
      query: `ALTER TABLE ${live.databases.base}.rejects DELETE WHERE offset = ${known[0]?.[0]} SETTINGS mutations_sync = 2`,
    })
    const rest = await rejects()
    expect(rest).toHaveLength(18)
    await dropOthers(live)
    const dry = await live.rebuild({ isDry: true })
    expect(dry.detail.rejects).toBe(19)
    expect(await rejects()).toEqual(rest)
    await live.rebuild()
    const all = await rejects()
    expect(all.slice(1)).toEqual(known.slice(1))
    expect(all).toHaveLength(19)
  })

  test('do not come back when their time is over, however often the log is read', async () => {
    const { PLEDGEVIEW_REJECT_RETENTION_MS: keptMs } = readConfig({})
    const now = Date.now()
    for (const at of [now - keptMs - 60_000, now - keptMs + 3_600_000]) {
      const writer = await openJournalWriter(live.journal, { now: () => at })
      await writer.append([{ topic: 'pledges', key: Buffer.from('c1/bad'), value: Buffer.from('no event') }])
      await writer.close()
    }
    await live.settled()
    const [, young] = await rejects()
    // As the TTL empties it.
    await live.tables.run({ query: `TRUNCATE TABLE ${live.databases.base}.rejects` })
    const { detail } = await live.rebuild()
    expect(detail.rejects).toBe(2)
    expect((await rejects()).map(([offset]) => offset)).toEqual([young?.[0]])
  })

  /** The places and times of all rejects. */
  async function rejects(): Promise<[offset: number, rejectedAt: number][]> {
    const found = await keptRejects(live.tables, live.databases)
    return found.map(({ record, rejectedAt }) => [record.offset, rejectedAt])
  }
})

describe('a rebuild of wrong tables', () => {
  test('repairs it, and a poller fetches only the rows that differ', async () => {
    const events = platformHistory(30)
    await live.append(events)
    await live.settled()
    for (const sql of [spoiltTitle, lostCampaign, inventedCampaign]) await damage(live, sql)
    const before = new Map((await stampsOf(live)).map(({ id, at }) => [id, at]))
    const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
    const [lost] = await column(
      live.tables,
      `SELECT toString(max(updated_at)) AS value FROM ${live.databases.read}.campaigns WHERE campaign_id = 'c3'`,
    )
    const { detail } = await live.rebuild()
    await live.settled()
    expect(detail.differences).toMatchObject({
      added: 1,
      removed: 1,
      different: 2,
      inMotion: 0,
      fields: { title: 2 },
    })
    expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
    const after = await stampsOf(live)
    const fetched = after.filter(({ at }) => at >= String(since)).map(({ id }) => id)
    expect(fetched).toEqual(['c1', 'c2', 'c3'])
    // Later than its removal, although the clock stands behind that.
    expect(String(after.find(({ id }) => id === 'c3')?.at) > String(lost)).toBe(true)
    const others = after.filter(({ id }) => !fetched.includes(id))
    expect(others.map(({ id, at }) => [id, at])).toEqual(others.map(({ id }) => [id, before.get(id)]))
    // A poller that follows departures sees the campaign that is gone.
    const departed = `SELECT DISTINCT campaign_id AS value FROM ${live.databases.read}.campaign_changes
      WHERE updated_at >= '${since}' ORDER BY value`
    expect(await column(live.tables, departed)).toEqual(['c1', 'c2', 'c3', 'ghost'])
  })

  test('has a dry run that reports what would change, field by field, and leaves nothing behind', async () => {
    await live.append(platformHistory(30))
    await live.settled()
    await damage(live, spoiltTitle)
    await damage(live, inventedCampaign)
    const before = await readViews(live.tables, live.databases)
    const { detail } = await live.rebuild({ isDry: true })
    expect(detail.differences).toMatchObject({ added: 0, removed: 1, different: 2, inMotion: 0 })
    expect(detail.differences?.examples).toContainEqual({
      campaign_id: 'c1',
      change: 'different',
      fields: [{ field: 'title', live: 'spoilt', rebuilt: 'Title of c1' }],
    })
    expect(await readViews(live.tables, live.databases)).toEqual(before)
    expect(await generationsOf(live)).toHaveLength(1)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'compared', isPreviousKept: false })
  })

  test('can be rolled back: the previous tables are live again, with everything that arrived meanwhile', async () => {
    const events = platformHistory(30)
    await live.append(events)
    await live.settled()
    await damage(live, inventedCampaign)
    await live.rebuild()
    const more = [
      campaignEvent({ campaign_id: 'new', version: 1 }),
      pledgeEvent({ campaign_id: 'c1', pledge_id: 'n' }),
    ]
    await live.append(more)
    await live.settled()
    await live.rebuild({ kind: 'rollback' })
    await live.settled()
    const ids = (await stampsOf(live)).map(({ id }) => id)
    expect(ids).toContain('ghost')
    const { campaigns } = readModelOf([...events, ...more])
    expect(ids.filter(id => id !== 'ghost')).toEqual([...campaigns.keys()].toSorted())
    // And a second rollback returns to the rebuilt tables.
    await live.rebuild({ kind: 'rollback' })
    await live.settled()
    expect(await readViews(live.tables, live.databases)).toEqual(
      expectedReading(readModelOf([...events, ...more])),
    )
  })

  const expireBatches = ({ tables, databases: { ledger } }: Parameters<typeof restTables>[0]) =>
    tables.run({ query: `ALTER TABLE ${ledger}.batch_log DELETE WHERE 1 SETTINGS mutations_sync = 2` })

  test.each([
    ['after months', restTables],
    // As after a start of the projectors that wrote the watermark, and was stopped before it folded.
    ['when its batches have expired', expireBatches],
  ])(
    'can be rolled back %s: what was hidden while the previous tables were given up stays hidden',
    async (_, rest) => {
      await live.append(platformHistory(10))
      await live.settled()
      const previous = generationOf(live.databases, live.databases.generation)
      let isHidden = false
      const tables = obstructed(live.tables, {
        async before({ text }) {
          if (isHidden || !isStamps(text)) return
          isHidden = true
          // The projectors still write it into the previous tables, which nothing folds any more.
          await live.append([campaignEvent({ campaign_id: 'c1', version: 3, status: 'SUSPENDED' })])
          await live.committed()
        },
      })
      await live.rebuild({ tables })
      await live.settled()
      const before = await stampsOf(live)
      expect(before.map(({ id }) => id)).not.toContain('c1')
      await rest({ tables: live.tables, databases: previous })
      await live.rebuild({ kind: 'rollback' })
      await live.settled()
      expect(live.databases.ledger).toBe(previous.ledger)
      expect(await stampsOf(live)).toEqual(before)
    },
  )
})

describe('what must not be promoted', () => {
  test('a history without everything that is live stops it and is named; with the loss accepted it continues', async () => {
    await live.append(platformHistory(10))
    await live.settled()
    const before = await readViews(live.tables, live.databases)
    emptyLog(live)
    await live.append([campaignEvent({ campaign_id: 'late', version: 3 })])
    await live.settled()
    const failure = await live.rebuild().catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c1 is in the live tables, but not in')
    expect((await readViews(live.tables, live.databases)).campaigns.length).toBe(before.campaigns.length + 1)
    await live.rebuild({ acceptsLoss: true })
    await live.settled()
    expect((await stampsOf(live)).map(({ id }) => id)).toEqual(['late'])
  })

  test('read tables that do not match their ledger stop it, and the campaign is named', async () => {
    await live.append(platformHistory(12))
    await live.settled()
    const next = generationOf(live.databases, 2)
    const failure = await live
      .rebuild({
        async onPhase(phase) {
          // As if a fold had counted wrongly.
          if (phase !== 'verifying') return
          await live.tables.run({
            query: `INSERT INTO ${next.read}.campaigns SELECT * REPLACE (pledge_count + 1 AS pledge_count, fold_id + 1 AS fold_id)
              FROM ${next.read}.campaigns FINAL WHERE campaign_id = 'c4'`,
          })
        },
      })
      .catch(error => error)
    expect(failure).toBeInstanceOf(VerificationFailed)
    expect(failure.message).toContain('campaign c4 shows pledges 5, but its ledger says 4')
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'verifying', isPreviousKept: false })
  })
})

describe('a running rebuild', () => {
  test('refuses a second rebuild and a drop; interrupted, a drop leaves nothing of it', async () => {
    await live.append(platformHistory(10))
    await live.settled()
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
    await expect(live.rebuild({ isAlone: false })).rejects.toBeInstanceOf(RebuildInProgress)
    await expect(dropOthers(live)).rejects.toBeInstanceOf(RebuildRefused)
    interrupt.abort(new Error('it was interrupted'))
    goOn.resolve()
    await expect(first).rejects.toThrow('interrupted')
    await dropOthers(live)
    expect(await generationsOf(live)).toHaveLength(1)
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'dropped', isPreviousKept: false })
    await expect(dropOthers(live)).rejects.toBeInstanceOf(RebuildRefused)
  })
})

describe('a clock of ClickHouse that steps back by an hour while a rebuild runs', () => {
  /** As if the signs of life until now had been given by a clock that was ahead. */
  async function stepBack(): Promise<void> {
    const log = `${live.databases.base}.generation_log`
    await live.tables.run({
      query: `INSERT INTO ${log} SELECT * REPLACE (written_at + INTERVAL 1 HOUR AS written_at) FROM ${log} WHERE kind = 'beat'`,
    })
  }

  test('hides none of its phases: its report is that of its end, and so are its signs of life', async () => {
    await live.append(platformHistory(5))
    await live.settled()
    const signs: unknown[] = []
    await live.rebuild({
      async onPhase(phase) {
        if (phase === 'folding') await stepBack()
        const query = `SELECT toString(max(written_at)) AS value FROM ${live.databases.base}.generation_log WHERE attempt = 1`
        signs.push(...(await column(live.tables, query)))
      },
    })
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'rebuilt', isAlive: false, ageMs: 0 })
    // The sign by which a fold worker sees that a promotion lives (attempts.ts).
    expect(new Set(signs).size).toBe(signs.length)
  })

  test('does not keep the next process from taking it over ten seconds after its last sign of life', async () => {
    await live.append(platformHistory(5))
    await live.settled()
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
    await live.rebuild({ isAlone: false })
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'rebuilt' })
  })
})

describe('a rebuild that another process took over', () => {
  test('does not begin its next step', async () => {
    await live.append(platformHistory(10))
    await live.settled()
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

describe('a generation that is noted as dropped', () => {
  const noteDropped = (generation: number) =>
    writeRow({ tables: live.tables, base: live.databases.base }, { kind: 'dropped', generation })

  beforeEach(async () => {
    await live.append(platformHistory(5))
    await live.settled()
    await live.rebuild()
  })

  test('while a rollback to it runs is not promoted', async () => {
    const tables = obstructed(live.tables, {
      async before({ text }) {
        if (isPromotion(text)) await noteDropped(1)
      },
    })
    await expect(live.rebuild({ kind: 'rollback', tables })).rejects.toBeInstanceOf(AttemptLost)
    expect(await readCurrent(live.tables, live.databases.base)).toBe(2)
  })

  test('and is current loses no table, neither by a drop nor by the next rebuild', async () => {
    await noteDropped(2)
    await dropOthers(live)
    expect(await generationsOf(live)).toEqual([2])
    await live.rebuild({ isDry: true })
    expect(await generationsOf(live)).toEqual([2])
  })
})

describe('a drop that is interrupted', () => {
  const interrupted = () =>
    dropOthers({
      ...live,
      tables: obstructed(live.tables, {
        before({ text }) {
          if (text.startsWith('DROP DATABASE')) throw new Error('it was interrupted')
        },
      }),
    })

  test('is told, and ended by the next one: no copy stays unnoticed', async () => {
    await live.append(platformHistory(5))
    await live.settled()
    await live.rebuild()
    await expect(interrupted()).rejects.toThrow('interrupted')
    expect(await rebuildStatus(live)).toMatchObject({
      phase: 'rebuilt',
      isPreviousKept: false,
      isHalfDropped: true,
    })
    await dropOthers(live)
    expect(await generationsOf(live)).toEqual([2])
    expect(await rebuildStatus(live)).toMatchObject({ phase: 'dropped', isHalfDropped: false })
  })

  test('is no end of an open rebuild: that goes on with another generation', async () => {
    await live.append(platformHistory(5))
    await live.settled()
    await expect(killedWhileVerifying()).rejects.toThrow('killed')
    await expect(interrupted()).rejects.toThrow('interrupted')
    await live.rebuild()
    expect(await generationsOf(live)).toEqual([1, 3])
  })
})

describe('a backup that has only the current generation, and is restored', () => {
  async function restore(lost: number): Promise<void> {
    await live.stopProjector()
    const { ledger, read } = generationOf(live.databases, lost)
    for (const name of [ledger, read]) await live.tables.run({ query: `DROP DATABASE ${name} SYNC` })
    await migrate(live.tables, live.databases)
    expect(await foundGenerations(live)).toEqual([3 - lost])
  }

  beforeEach(async () => {
    await live.append(platformHistory(5))
    await live.settled()
  })

  test('has no previous tables: they are not made empty, what needs them is refused until a drop, and then a rebuild works', async () => {
    await live.rebuild()
    await live.settled()
    await restore(1)
    expect(await rebuildStatus(live)).toMatchObject({ isPreviousKept: false })
    for (const kind of ['rollback', 'rebuild'] as const) {
      await expect(live.rebuild({ kind })).rejects.toThrow(
        'not in the backup that was restored: give them up',
      )
    }
    await dropOthers(live)
    await live.rebuild()
    expect(await generationsOf(live)).toEqual([2, 3])
  })

  test('has nothing of an unfinished rebuild: that begins again with another generation', async () => {
    await expect(killedWhileVerifying()).rejects.toThrow('killed')
    await restore(2)
    await live.rebuild()
    expect(await generationsOf(live)).toEqual([1, 3])
  })
})

test('a rebuild that begins again after twelve hours forgets the consumer of the one before', async () => {
  await live.append(platformHistory(5))
  await live.settled()
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

/** The numbers of those whose databases are there. */
async function generationsOf(model: RebuildableModel): Promise<number[]> {
  const found = await foundGenerations(model)
  const logged = await readGenerations({ tables: model.tables, base: model.databases.base })
  expect(standingGenerations(logged)).toEqual(found)
  return found
}

async function foundGenerations({ tables, databases }: RebuildableModel): Promise<number[]> {
  const found = await column(
    tables,
    `SELECT toUInt32(extract(name, '[0-9]+$')) AS value FROM system.databases
     WHERE match(name, '^${databases.base}_ledger_[0-9]+$') ORDER BY value`,
  )
  return found.map(Number)
}
