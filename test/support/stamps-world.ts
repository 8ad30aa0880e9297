/** Two sides of `takeStamps` on one server, in which each campaign has had some fate. */
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { intBetween, type Random } from '../../services/demo/random.ts'
import { type TakeStampsDependencies, takeStamps } from '../../services/rebuild/take-stamps.ts'
import { readConfig } from '../../services/shared/config.ts'
import type { Shard } from '../../services/shared/tables/port.ts'
import { createIngest, createTestFoldWorker, type ModelTables } from './model-tables.ts'
import { apiKeyEvent, campaignEvent, campaignTombstone } from './sample-events.ts'

const config = readConfig({ PLEDGEVIEW_COMMIT_HORIZON_MS: '20000' })
// The command sleeps only to wait for other processes, and here there are none.
const sleep = async () => {}

/** What happened to a campaign: there, and here. */
const fates = {
  same: [[1], [1]],
  changed: [[1], [1, 2]],
  'here alone': [[], [1]],
  'hidden since': [[1], [1, 'hidden 2']],
  'deleted since': [[1], [1, 'deleted']],
  'shown again': [['hidden 2'], [3]],
  'hidden on both': [['hidden 1'], ['hidden 1']],
  'missing here': [[1], []],
  'older here': [[1, 2], [1]],
  'deletion lost': [[1, 'deleted'], [1]],
  'hiding lost': [[1, 'hidden 2'], [1]],
} as const satisfies Record<string, readonly [there: readonly Step[], here: readonly Step[]]>
type Step = number | `hidden ${number}` | 'deleted'
export type Fate = keyof typeof fates

/** Those that nothing is lost by. */
export const harmless: readonly Fate[] = [
  'same',
  'changed',
  'here alone',
  'hidden since',
  'deleted since',
  'shown again',
  'hidden on both',
]
export const losses: readonly Fate[] = ['missing here', 'older here']
export const returns: readonly Fate[] = ['deletion lost', 'hiding lost']

export interface Side extends Shard {
  ingest(events: readonly ChangeEvent[]): Promise<void>
  /** Folds as a projector that starts. */
  fold(): Promise<void>
}

export interface World {
  there: Side
  here: Side
  campaigns: ReadonlyMap<string, Fate>
  take(how?: Partial<TakeStampsDependencies>): ReturnType<typeof takeStamps>
}

/** Tables of its own, on the server of the model. */
export async function openSide(model: ModelTables): Promise<Side> {
  const { tables } = model
  const databases = await model.freshDatabases()
  let folds = 0
  return {
    tables,
    databases,
    ingest: createIngest(tables, databases),
    async fold() {
      const { foldWorker } = createTestFoldWorker(tables, databases, { holder: `fold-worker-${++folds}` })
      await foldWorker.acquireLeadership()
      await foldWorker.fold()
    },
  }
}

let runs = 0

/** `aheadMs`: of the clock of the other server. */
export async function openStampsWorld(
  model: ModelTables,
  campaigns: ReadonlyMap<string, Fate>,
  { aheadMs = 0 } = {},
): Promise<World> {
  const there = await openSide(model)
  const here = await openSide(model)
  const eventsOf = (side: 0 | 1) =>
    [...campaigns].flatMap(([id, fate]) => fates[fate][side].map(step => eventOf(id, step)))
  // The clock of the other server is ahead.
  if (aheadMs > 0) {
    await model.tables.run({
      query: `INSERT INTO ${there.databases.model}.stamp_floor (shard, reached)
              SELECT '', now64(3, 'UTC') + toIntervalMillisecond(${aheadMs})`,
    })
  }
  const key = apiKeyEvent({ key: 'k', account_id: 'a' })
  await here.ingest([key, ...eventsOf(1)])
  await here.fold()
  await there.ingest([key, ...eventsOf(0)])
  await there.fold()
  return {
    there,
    here,
    campaigns,
    take: how =>
      takeStamps({
        tables: here.tables,
        databases: here.databases,
        from: [there],
        config,
        acceptsLoss: false,
        run: `stamps-${++runs}`,
        monotonicMs: () => performance.now(),
        sleep,
        random: () => 0,
        ...how,
      }),
  }
}

function eventOf(campaign_id: string, step: Step): ChangeEvent {
  if (step === 'deleted') return campaignTombstone(campaign_id)
  if (typeof step === 'string') {
    return campaignEvent({ campaign_id, version: Number(step.slice('hidden '.length)), status: 'SUBMITTED' })
  }
  return campaignEvent({ campaign_id, version: step, title: `Version ${step}` })
}

export function randomCampaigns(random: Random, from: readonly Fate[]): Map<string, Fate> {
  const count = intBetween(random, 8, 16)
  const fateOf = (n: number) => from[n % from.length] as Fate
  return new Map(Array.from({ length: count }, (_, n) => [`c${intBetween(random, 1, 9)}-${n}`, fateOf(n)]))
}
