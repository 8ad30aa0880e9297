/** The projectors of a world: they write to the ledger, and run the real fold workers. */
import { pino } from 'pino'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { untilNoFoldRuns } from '../../../services/projector/fold/fold-leadership.ts'
import { createFoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import { runFoldLoop } from '../../../services/projector/fold/fold-workers.ts'
import type { Sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { type Databases, type Tables, TablesError } from '../../../services/tables/port.ts'
import { campaignEvent, campaignTombstone } from '../events/sample-events.ts'
import { createIngest } from '../projector/model-tables.ts'
import { dayMs } from '../projector/stamp-clock.ts'
import { randomOf } from '../runner/random.ts'
import type { ClickHouse, Life } from './engine/clickhouse.ts'
import { aloneMsMax } from './heavy-campaign.ts'
import type { Safeguards } from './safeguards.ts'
import { type CampaignChange, type FoldWorkerPlan, foldMsMax, type Scenario } from './scenario.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface ProjectorsDependencies {
  clickHouse: ClickHouse
  databases: Databases
  time: VirtualTime
  startsAt: number
  scenario: Scenario
  safeguards: Safeguards
}

// As in the service.
const stillRunningMsMax = 60_000
// Nothing reads them.
const [metrics, logger] = [createMetrics(), pino({ level: 'silent' })]

/** Delivers all changes and replays. Resolves when ClickHouse has confirmed the last one. */
export async function ingestAll(dependencies: ProjectorsDependencies): Promise<void> {
  const { scenario } = dependencies
  const projectors = [0, 1].map(async projector => {
    const ingest = startProjector(dependencies, `projector-${projector}`)
    for (const { at, changes } of scenario.batches.filter(batch => batch.projector === projector)) {
      await until(dependencies, at)
      await ingest(changes)
    }
  })
  const replays = scenario.replaysAt.map(async (at, n) => {
    await until(dependencies, at)
    const ingest = startProjector(dependencies, `replay-${n}`)
    for (const batch of scenario.batches) if (batch.at < at) await ingest(batch.changes)
  })
  await Promise.all([...projectors, ...replays])
}

/** Runs a fold worker by its plan until the signal aborts. Rejects if it fails. */
export async function startFoldWorker(
  dependencies: ProjectorsDependencies,
  { plan, number, signal }: { plan: FoldWorkerPlan; number: number; signal: AbortSignal },
): Promise<void> {
  const { clickHouse, databases, time, scenario, startsAt, safeguards } = dependencies
  const { campaignsPerStatementMax, idleMs, seed } = scenario
  const life = lifeOf(plan, dependencies)
  const now = () => time.now() - startsAt
  const sleep: Sleep = async (ms, until) => {
    await time.sleep(ms, until).catch(() => {})
    await life.awake()
  }
  await until(dependencies, plan.leadsFrom)
  const connected = clickHouse.connect(life)
  const tables = safeguards.newEpoch ? connected : repeating(connected)
  // A pause of less than a tick would take no time.
  const pause = (ms: number) => sleep(Math.max(ms, scenario.tickMs))
  const wait = { msMax: stillRunningMsMax, monotonicMs: now, sleep: pause }
  const holder = `fold-worker-${number}`
  const foldWorker = createFoldWorker({
    tables,
    databases,
    holder,
    config: {
      ...readConfig({}),
      PLEDGEVIEW_FOLD_MS_MAX: foldMsMax,
      PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: campaignsPerStatementMax,
      PLEDGEVIEW_FOLD_ALONE_MS_MAX: aloneMsMax,
    },
    untilNoneRuns: async () => {
      if (safeguards.wait) await untilNoFoldRuns(tables, databases, wait)
    },
    monotonicMs: now,
    now: time.now,
    sleep,
    random: randomOf('fold-worker', seed, number),
  })
  await runFoldLoop(
    {
      foldWorker,
      leads: () => now() < plan.leadsUntil,
      // Never notifies: the fold worker finds new batches by polling.
      notifier: { notify() {}, wait: sleep },
      idleMsMax: idleMs,
      retryMsMax: Number.POSITIVE_INFINITY,
      ...{ holder, metrics, logger },
      monotonicMs: now,
      now,
      rest: sleep,
      sleep,
    },
    signal,
  )
}

/** Sends a statement again until it is answered, as no adapter may. */
function repeating(tables: Tables): Tables {
  return {
    ...tables,
    async run(statement) {
      for (;;) {
        try {
          return await tables.run(statement)
        } catch (error) {
          const isAnswered = !(error instanceof TablesError) || error.type !== undefined
          if (isAnswered) throw error
        }
      }
    },
  }
}

/** Pauses or kills a process at the times of its plan, whatever it is doing. */
function lifeOf(
  { diesAt, pausesAt, pausesUntil }: FoldWorkerPlan,
  { time, startsAt }: ProjectorsDependencies,
): Life {
  return {
    async awake() {
      const at = time.now() - startsAt
      if (at >= diesAt) await new Promise(() => {})
      if (at >= pausesAt && at < pausesUntil) await time.sleep(pausesUntil - at)
    },
  }
}

const alive: Life = { awake: async () => {} }

/** One run of a projector. It repeats a batch until it is confirmed. */
function startProjector({ clickHouse, databases, time }: ProjectorsDependencies, name: string) {
  const ingest = createIngest(clickHouse.connect(alive), databases, name)
  return async (changes: readonly CampaignChange[]) => {
    for (;;) {
      try {
        return await ingest(changes.map(eventOf))
      } catch (error) {
        if (!(error instanceof TablesError && error.retryable)) throw error
        await time.sleep(200)
      }
    }
  }
}

function eventOf({ id, version, state }: CampaignChange) {
  if (state === null) return campaignTombstone(id)
  const { status, title, launchDay } = state
  return campaignEvent({
    campaign_id: id,
    version,
    status,
    title,
    launch_date: Date.UTC(2025, 0, 1) + launchDay * dayMs,
  })
}

/** Everything that the platform says. */
export function eventsOf({ batches }: Scenario): ChangeEvent[] {
  return batches.flatMap(({ changes }) => changes).map(eventOf)
}

async function until({ time, startsAt }: ProjectorsDependencies, at: number): Promise<void> {
  await time.sleep(startsAt + at - time.now())
}
