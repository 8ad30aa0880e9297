/** The promotion of a generation: late, and beside leaders that lag behind. kills.test.ts kills it at some of its statements. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { AttemptLost } from '../../../services/generations/attempts.ts'
import { dropOthers } from '../../../services/generations/rebuilds.ts'
import { FoldPaused, SupersededFoldWorker, takesMax } from '../../../services/projector/fold/fold-epochs.ts'
import { generationOf, presentOf } from '../../../services/tables/generation-log.ts'
import { obstructed, type TablesCall } from '../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../support/events/model.ts'
import { pledgeEvent } from '../../support/events/sample-events.ts'
import { damage, inventedCampaign, spoiltTitle } from '../../support/generations/damage.ts'
import {
  isPromotion,
  isStamps,
  openRebuildableModel,
  platformHistory,
  type RebuildableModel,
} from '../../support/generations/rebuilds.ts'
import { column } from '../../support/projector/fold-records.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  readViews,
} from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000, hookTimeout: 120_000 })

const model = useModelTables()
let live: RebuildableModel
let events: ChangeEvent[]

beforeEach(() => {
  events = platformHistory(20)
})
afterEach(() => live.close())

/** `hurry`: by default a process that waits for a promotion gives it up after ten seconds, not after a minute. */
async function open(tables = model.tables, hurry = 6): Promise<void> {
  live = await openRebuildableModel({ tables, freshDatabases: () => model.freshDatabases() }, { hurry })
  await live.append(events)
  await live.settled()
}

async function append(more: readonly ChangeEvent[]): Promise<void> {
  events.push(...more)
  await live.append(more)
}

async function expectTruth(): Promise<void> {
  await live.settled()
  expect(await readViews(live.tables, live.databases)).toEqual(expectedReading(readModelOf(events)))
}

test('a row that comes after its attempt was given up changes nothing', async () => {
  await open(model.tables, 12)
  let isStill = false
  const goOn = Promise.withResolvers<void>()
  const from = live.databases.generation
  const still = obstructed(live.tables, {
    async before({ text }) {
      if (isStill) return goOn.promise
      if (!isPromotion(text)) return
      isStill = true
      await append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
      // The projectors give it up, and fold.
      await live.settled()
      goOn.resolve()
    },
  })
  await expect(live.rebuild({ tables: still })).rejects.toBeInstanceOf(AttemptLost)
  expect(isStill).toBe(true)
  await expectTruth()
  expect(live.databases.generation).toBe(from)
})

test('a process that was taken for dead, and wakes up while the next one stamps, takes nothing from it', async () => {
  await open()
  for (const sql of [spoiltTitle, inventedCampaign]) await damage(live, sql)
  const [since] = await column(live.tables, "SELECT toString(now64(3, 'UTC')) AS value")
  const next = generationOf(live.databases, live.databases.generation + 1)
  const [asleep, awake, hasTried, isOver] = [1, 2, 3, 4].map(() => Promise.withResolvers<void>())
  let isPromoting = false
  let takes = 0
  const sleeper = obstructed(live.tables, {
    async before({ text }) {
      isPromoting ||= text.includes(`INSERT INTO ${live.databases.ledger}.fold_epochs`)
      if (!isPromoting) return
      asleep?.resolve()
      await awake?.promise
      // It does not learn from the log that another took over.
      if (text.includes('.generation_log')) await isOver?.promise
    },
    after({ text }) {
      if (isPromoting && text.includes(`INSERT INTO ${next.ledger}.fold_epochs`)) hasTried?.resolve()
      if (isPromoting && text.includes('.fold_epochs (epoch') && ++takes === takesMax) hasTried?.resolve()
    },
  })
  const first = live.rebuild({ tables: sleeper })
  first.catch(() => {})
  await asleep?.promise
  await live.rebuild({
    tables: obstructed(live.tables, {
      async before({ text }) {
        if (!isStamps(text)) return
        awake?.resolve()
        await hasTried?.promise
      },
    }),
  })
  isOver?.resolve()
  // It lost a fold, and did not learn it from the log.
  const cause = expect.any(SupersededFoldWorker)
  await expect(first).rejects.toMatchObject({ name: 'AttemptLost', cause })
  await expectTruth()
  const changed = `SELECT DISTINCT campaign_id AS value FROM ${live.databases.read}.campaign_changes
    WHERE updated_at >= '${since}' AND campaign_id != '' ORDER BY value`
  expect(await column(live.tables, changed)).toEqual(['c1', 'c2', 'ghost'])
})

test.each([
  { what: 'stamps', later: 1, isLost: isStamps },
  { what: 'keys', later: 0, isLost: (text: string) => /INSERT INTO \w+\.api_keys/.test(text) },
])(
  'a late copy of the statement that took its epoch ends it: it promotes nothing without its $what',
  async ({ later, isLost }) => {
    await open()
    const from = live.databases.generation
    const { ledger } = generationOf(live.databases, from + later)
    let taken: TablesCall | undefined
    const repeating = obstructed(live.tables, {
      async before(call) {
        if (call.text.includes(`INSERT INTO ${ledger}.fold_epochs`)) taken = call
        if (!taken || !isLost(call.text)) return
        const { text: query, query_params } = taken
        taken = undefined
        await live.tables.run({ query, query_params })
      },
    })
    await expect(live.rebuild({ tables: repeating })).rejects.toBeInstanceOf(AttemptLost)
    await expectTruth()
    expect(live.databases.generation).toBe(from)
  },
)

test('a leader that has not noticed the row writes nothing any more, and does not get the fold back', async () => {
  await open()
  const before = presentOf(live.databases)
  await live.stopProjector()
  const { foldWorker: follower } = createTestFoldWorker(live.tables, live.databases)
  await follower.acquireLeadership()
  const { foldWorker } = createTestFoldWorker(live.tables, before)
  await foldWorker.acquireLeadership()
  await damage(live, spoiltTitle)
  await live.rebuild()
  await createIngest(live.tables, before, 'late')([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
  const rows = () => column(live.tables, `SELECT count() AS value FROM ${before.read}.campaigns`)
  const written = await rows()
  await expect(foldWorker.fold()).rejects.toBeInstanceOf(FoldPaused)
  await expect(foldWorker.acquireLeadership()).rejects.toBeInstanceOf(FoldPaused)
  expect(await rows()).toEqual(written)
  // Its databases have followed the row in the middle of its term. That is no second projector.
  await live.databases.follow(live.tables)
  await createIngest(live.tables, live.databases, 'again')(events.slice(0, 3))
  await expect(follower.fold()).rejects.toBeInstanceOf(FoldPaused)
  await live.startProjector()
  await expectTruth()
})

test.each([
  { name: 'a projector whose insert stood still', stands: ({ kind }: TablesCall) => kind === 'insert' },
  {
    name: 'a projector whose positions stood still',
    stands: ({ kind, text }: TablesCall) => kind === 'insert' && text.endsWith('.positions'),
  },
])('$name until its generation was dropped follows the row, and loses nothing', async ({ stands }) => {
  let still: Promise<void> | undefined
  let former = ''
  let hasFollowed = false
  const tables = obstructed(model.tables, {
    before: call => {
      if (former !== '' && live.databases.ledger !== former)
        hasFollowed ||= call.text.includes(`${live.databases.ledger}.positions`)
      return stands(call) ? still : undefined
    },
  })
  await open(tables)
  former = live.databases.ledger
  const goOn = Promise.withResolvers<void>()
  still = goOn.promise
  await append([pledgeEvent({ campaign_id: 'c1', pledge_id: 'late' })])
  await live.rebuild({ tables: model.tables })
  await dropOthers({ ...live, tables: model.tables })
  // What of it does not stand still has followed the row by then, and has found its new positions.
  await live.until(() => hasFollowed)
  still = undefined
  goOn.resolve()
  await expectTruth()
})
