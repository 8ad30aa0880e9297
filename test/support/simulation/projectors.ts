/** The projectors of a world: what they put into the ledger, and the folders, which are the real ones. */
import { randomOf } from '../../../services/demo/random.ts'
import { createFolder } from '../../../services/projector/folder.ts'
import { runFolder } from '../../../services/projector/run-folder.ts'
import type { Sleep } from '../../../services/projector/sleep.ts'
import type { Bell } from '../../../services/shared/bell.ts'
import { type Databases, type Tables, TablesError } from '../../../services/shared/tables/port.ts'
import { createIngest } from '../model-tables.ts'
import { campaignEvent, campaignTombstone } from '../sample-events.ts'
import type { ClickHouse, Life } from './clickhouse.ts'
import type { CampaignChange, FolderPlan, Scenario } from './scenario.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface ProjectorsDependencies {
  clickHouse: ClickHouse
  databases: Databases
  time: VirtualTime
  startsAt: number
  scenario: Scenario
}

const dayMs = 24 * 60 * 60 * 1_000

/** Delivers all changes and replays. Resolves when ClickHouse has confirmed the last. */
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

/** Starts the folders of the plan. They run until the signal aborts; one that fails rejects. */
export function startFolders(dependencies: ProjectorsDependencies, signal: AbortSignal): Promise<void>[] {
  return dependencies.scenario.folders.map((plan, number) =>
    startFolder(dependencies, { plan, number, signal }),
  )
}

async function startFolder(
  dependencies: ProjectorsDependencies,
  { plan, number, signal }: { plan: FolderPlan; number: number; signal: AbortSignal },
): Promise<void> {
  const { clickHouse, databases, time, scenario, startsAt } = dependencies
  const { horizonMs, campaignsPerStatementMax, idleMs, seed } = scenario
  const life = lifeOf(plan, dependencies)
  const now = () => time.now() - startsAt
  const sleep: Sleep = async (ms, until) => {
    await time.sleep(ms, until).catch(() => {})
    await life.awake()
  }
  await until(dependencies, plan.leadsFrom)
  const folder = createFolder({
    tables: clickHouse.connect(life),
    databases,
    holder: `folder-${number}`,
    settings: { horizonMs, settleMs: horizonMs, platformDigits: 2, campaignsPerStatementMax },
    monotonicMs: now,
    sleep,
    random: randomOf('folder', seed, number),
  })
  await runFolder(
    {
      folder,
      leads: () => now() < plan.leadsUntil,
      bell: patientBell(sleep),
      idleMsMax: idleMs,
      retryMsMax: Number.POSITIVE_INFINITY,
      onFold: () => {},
      onRetry: () => {},
      onSuperseded: () => {},
      onTakeOver: () => {},
      monotonicMs: now,
      now,
      sleep,
    },
    signal,
  )
}

/** What comes over a process at the moments of its plan, wherever it is just then. */
function lifeOf(
  { diesAt, pausesAt, pausesUntil }: FolderPlan,
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

// Nobody rings: the folder finds what there is to do by looking.
function patientBell(sleep: Sleep): Bell {
  return { ring() {}, wait: sleep }
}

const alive: Life = { awake: async () => {} }

/** One run of a projector: it offers a batch again until it is confirmed. */
function startProjector({ clickHouse, databases, time }: ProjectorsDependencies, name: string) {
  const tables: Tables = clickHouse.connect(alive)
  const ingest = createIngest(tables, databases, name)
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
    launch_date: launchMomentOf(launchDay),
  })
}

/** The launch date that stands in an event, Unix milliseconds. */
export function launchMomentOf(day: number): number {
  return Date.UTC(2025, 0, 1) + day * dayMs
}

async function until({ time, startsAt }: ProjectorsDependencies, at: number): Promise<void> {
  await time.sleep(startsAt + at - time.now())
}
