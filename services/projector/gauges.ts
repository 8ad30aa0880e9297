/**
 * The gauges of the projector. Alert rules use them, so they must be right when something is stuck: what grows with the clock
 * is computed at each scrape from what this process knows, and nothing is asked for it. What has to be asked (how much waits in
 * the log, how far the fold is, the rebuild) has a bound of time, and an answer that comes late counts for the next scrape.
 */
import { Gauge } from '@prometheus-io/client'
import type { PartitionLag } from '../log/port.ts'
import { kept } from '../runtime/async/kept.ts'
import { within } from '../runtime/async/sleep.ts'
import { tablesCheck } from '../runtime/ops/checks.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Tables } from '../tables/port.ts'
import type { FoldWorkers } from './fold/fold-workers.ts'
import type { Claims } from './producers/claims.ts'
import type { OldestRecord, Unfolded } from './waiting.ts'

export interface GaugeDependencies
  extends Pick<Runtime, 'metrics' | 'now' | 'monotonicMs'>,
    Pick<FoldWorkers, 'isLeading' | 'lastFold' | 'firstLedAt'> {
  /** The server, or each shard. */
  servers: readonly Pick<Tables, 'rows'>[]
  isRunning: () => boolean
  oldestUncommitted: () => OldestRecord[]
  unfolded: Unfolded
  lag: () => Promise<PartitionLag[]>
  /** Rejects in the dead-letter queue, and how many of them no retry has settled. */
  rejectCounts: () => Promise<{ total: number; open: number }>
  /** Reads all public slugs: about 0.1 s for 400,000 campaigns. */
  sharedSlugCount: () => Promise<number>
  claims: () => Promise<Claims>
  reportProjection: () => Promise<void>
  rebuild: () => Promise<RebuildUnderWay | undefined>
}

/** A rebuild, from its beginning to its end. */
export interface RebuildUnderWay {
  phase: string
  /** Its last heartbeat, and how long ago that is by ClickHouse's clock, ms. After that clock stepped back, the age is negative. */
  writtenAt: string
  ageMs: number
}

/** Registers the gauges. Resolves, at each call, when what has to be asked for a scrape was asked. It never throws. */
export function createProjectorGauges(dependencies: GaugeDependencies): () => Promise<void> {
  const { metrics, monotonicMs, servers, isLeading, unfolded } = dependencies
  registerClocked(dependencies)
  const gauges = registerAsked(metrics)
  /** The last heartbeat of a rebuild, and when it was read first. */
  let beat: { writtenAt: string | undefined; at: number } = { writtenAt: undefined, at: 0 }
  let slugsAt = Number.NEGATIVE_INFINITY

  async function readLog(): Promise<void> {
    const partitions = await dependencies.lag()
    // Another projector reports the partitions that this one held before.
    metrics.lag.reset()
    for (const { topic, partition, committed, end } of partitions) {
      // A log that was replaced may end before the position.
      metrics.lag.set({ topic, partition }, Math.max(0, end - committed))
    }
  }

  async function readTables(): Promise<void> {
    await unfolded.read()
    const present = await dependencies.rebuild()
    gauges.rebuildPhase.reset()
    if (present) gauges.rebuildPhase.set({ phase: present.phase }, 1)
    if (beat.writtenAt !== present?.writtenAt) beat = { writtenAt: present?.writtenAt, at: monotonicMs() }
    gauges.rebuildSilence.set(present ? Math.max(present.ageMs, monotonicMs() - beat.at) / 1000 : 0)
    const rejects = await dependencies.rejectCounts()
    gauges.rejects.set(rejects.total)
    gauges.openRejects.set(rejects.open)
    await dependencies.reportProjection()
  }

  /** The leader reads them, at most once a minute. */
  async function readSlugs(): Promise<void> {
    if (!isLeading()) {
      for (const gauge of [gauges.sharedSlugs, gauges.unknownCampaignPledges, gauges.oversoldClaims])
        gauge.set(0)
      // A process that leads again reads them at once.
      slugsAt = Number.NEGATIVE_INFINITY
      return
    }
    if (monotonicMs() - slugsAt < slugsMs) return
    slugsAt = monotonicMs()
    gauges.sharedSlugs.set(await dependencies.sharedSlugCount())
    const { unknown, oversold } = await dependencies.claims()
    gauges.unknownCampaignPledges.set(unknown.pledges)
    gauges.oversoldClaims.set(oversold.claims)
  }

  // A reading that takes longer than a scrape is not begun twice.
  const readings = [readLog, readTables, readSlugs].map(read => kept(read))
  return async () => {
    // Not whether the readings were in time: they are several statements, and a slow ClickHouse is not away.
    const checks = servers.map(server => tablesCheck(server))
    await Promise.allSettled(readings.map(read => within(answerMsMax, read())))
    const areUp = (await Promise.all(checks)).every(({ ok }) => ok)
    metrics.clickhouseUp.set(areUp ? 1 : 0)
  }
}

const answerMsMax = 2_000
const slugsMs = 60_000

/** The gauges that change with the clock. They are computed when they are asked for. */
function registerClocked(dependencies: GaugeDependencies): void {
  const { metrics, now, isRunning, isLeading, lastFold, firstLedAt, oldestUncommitted, unfolded } =
    dependencies
  const ageOf = (at: number | undefined): number => (at === undefined ? 0 : Math.max(0, now() - at) / 1000)

  gaugeOf(metrics, {
    name: 'pledgeview_lag_seconds',
    help: 'Age of the oldest record that is not in the tables, by topic and partition; 0 if none waits',
    labelNames: ['topic', 'partition'] as const,
    collect() {
      this.reset()
      for (const { topic, partition, waitsSince } of oldestUncommitted()) {
        this.set({ topic, partition }, ageOf(waitsSince))
      }
    },
  })
  gaugeOf(metrics, {
    name: 'pledgeview_freshness_seconds',
    help: 'Age of the oldest event that this process knows and that readers cannot see yet; 0 if none waits',
    collect() {
      const waiting = [unfolded.waitsSince(), ...oldestUncommitted().map(({ waitsSince }) => waitsSince)]
      this.set(Math.max(...waiting.map(ageOf)))
    },
  })
  gaugeOf(metrics, {
    name: 'pledgeview_fold_completed_timestamp_seconds',
    help: 'Unix time at which this process last completed a fold, or found nothing to fold. Before its first fold: when it took the leadership, or 0',
    collect() {
      this.set((lastFold()?.completedAt ?? firstLedAt() ?? 0) / 1000)
    },
  })
  gaugeOf(metrics, {
    name: 'pledgeview_is_leader',
    help: 'Whether this process leads the fold: 1 or 0',
    collect() {
      this.set(isLeading() ? 1 : 0)
    },
  })
  gaugeOf(metrics, {
    name: 'pledgeview_projector_running',
    help: 'Whether the projector of this process runs: 1, or 0 after it stopped with an error',
    collect() {
      this.set(isRunning() ? 1 : 0)
    },
  })
}

function registerAsked(metrics: Metrics) {
  return {
    rejects: gaugeOf(metrics, {
      name: 'pledgeview_rejects_stored',
      help: 'Records in the dead-letter queue. A retry leaves them there',
    }),
    openRejects: gaugeOf(metrics, {
      name: 'pledgeview_rejects_open',
      help: 'Records in the dead-letter queue that no retry has settled',
    }),
    sharedSlugs: gaugeOf(metrics, {
      name: 'pledgeview_shared_slugs',
      help: 'Slugs that several public campaigns have, as the leader found them within the last minute',
    }),
    unknownCampaignPledges: gaugeOf(metrics, {
      name: 'pledgeview_unknown_campaign_pledges',
      help: 'Pledges that would count, of campaigns that are not in the ledger, as the leader found them within the last minute',
    }),
    oversoldClaims: gaugeOf(metrics, {
      name: 'pledgeview_oversold_claims',
      help: 'Claims of tiers beyond their quantity, as the leader found them within the last minute',
    }),
    rebuildPhase: gaugeOf(metrics, {
      name: 'pledgeview_rebuild_phase',
      help: '1 for the phase of the rebuild that is under way. There is no phase if none is under way',
      labelNames: ['phase'] as const,
    }),
    rebuildSilence: gaugeOf(metrics, {
      name: 'pledgeview_rebuild_silent_seconds',
      help: 'Time since the last heartbeat of the rebuild that is under way; 0 if none is under way',
    }),
  }
}

/** Registers a gauge. One of an earlier projector of this process is replaced. */
function gaugeOf<Label extends string>(
  { registry }: Metrics,
  settings: Omit<ConstructorParameters<typeof Gauge<Label>>[0], 'registers'>,
): Gauge<Label> {
  registry.removeSingleMetric(settings.name)
  return new Gauge<Label>({ ...settings, registers: [registry] })
}
