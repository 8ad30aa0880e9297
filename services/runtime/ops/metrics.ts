/**
 * The metrics of the services, in one registry per process. Their help texts have the units. A gauge without labels that only
 * the projector can know is in projector/gauges.ts, so that no other process reports it as 0.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import { programVersion } from '../program-version.ts'
import { brokenInvariants } from './invariants.ts'

export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const counter = <Label extends string>(settings: ConstructorParameters<typeof Counter<Label>>[0]) =>
    new Counter<Label>({ ...settings, registers })
  const gauge = <Label extends string>(settings: ConstructorParameters<typeof Gauge<Label>>[0]) =>
    new Gauge<Label>({ ...settings, registers })
  const histogram = <Label extends string>(settings: ConstructorParameters<typeof Histogram<Label>>[0]) =>
    new Histogram<Label>({ ...settings, registers })
  gauge({
    name: 'pledgeview_build_info',
    help: 'Always 1. The labels tell which version of the program runs, on which version of Node',
    labelNames: ['version', 'node'] as const,
  }).set({ version: programVersion, node: process.versions.node }, 1)
  counter({
    name: 'pledgeview_invariants_broken_total',
    help: 'How often an assertion of the program did not hold, by name (services/runtime/ops/invariants.ts): a defect of Pledgeview',
    labelNames: ['name'] as const,
    collect() {
      this.reset()
      for (const [name, count] of brokenInvariants()) this.inc({ name }, count)
    },
  })
  gauge({
    name: 'pledgeview_clock_seconds',
    help: 'Unix time by the clock of this process, as it answers the scrape',
    collect() {
      this.set(Date.now() / 1000)
    },
  })
  const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
  return {
    registry,
    events: counter({
      name: 'pledgeview_events_total',
      help: 'Records projected, by topic and outcome (accepted, rejected)',
      labelNames: ['topic', 'outcome'] as const,
    }),
    misplacedRecords: counter({
      name: 'pledgeview_misplaced_records_total',
      help: 'Records projected that are not in the partition of their key, by topic',
      labelNames: ['topic'] as const,
    }),
    comparedVersions: counter({
      name: 'pledgeview_compared_versions_total',
      help:
        'Events whose version was compared with the ledger, by topic and outcome (in_order, stale, conflicting): all of small batches, ' +
        'a sample of large ones',
      labelNames: ['topic', 'outcome'] as const,
    }),
    batchSeconds: histogram({
      name: 'pledgeview_batch_write_seconds',
      help: 'Time to write a collected batch: its rows, its positions, and the offsets that tools for lag read',
      buckets: secondsBuckets,
    }),
    retries: counter({
      name: 'pledgeview_retries_total',
      help: 'Retries, by stage (schemas, ingest, fold, rewrite)',
      labelNames: ['stage'] as const,
    }),
    foldSeconds: histogram({
      name: 'pledgeview_fold_seconds',
      help: 'Time of one fold, all its statements',
      buckets: secondsBuckets,
    }),
    foldCampaigns: histogram({
      name: 'pledgeview_fold_campaigns',
      help: 'Campaigns that one fold looked at',
      buckets: [1, 10, 100, 1_000, 10_000, 100_000],
    }),
    quarantine: gauge({
      name: 'pledgeview_quarantined_campaign',
      help: 'A campaign in quarantine, which the common folds leave out: how many tries in a row have failed',
      labelNames: ['campaign'] as const,
    }),
    freshnessSeconds: histogram({
      name: 'pledgeview_event_to_visible_seconds',
      help: 'From the append of the oldest event of a fold to its visibility in the read tables',
      buckets: secondsBuckets,
    }),
    clockSteps: counter({
      name: 'pledgeview_clock_steps_total',
      help: 'Steps of the clock of ClickHouse that the fold noticed, by direction (back, forward)',
      labelNames: ['direction'] as const,
    }),
    lag: gauge({
      name: 'pledgeview_lag_records',
      help: 'Records in the log that are not in the tables, by topic and partition',
      labelNames: ['topic', 'partition'] as const,
    }),
    tombstoneRetention: gauge({
      name: 'pledgeview_tombstone_retention_seconds',
      help: 'How long a topic keeps tombstones after compaction, as read at the start',
      labelNames: ['topic'] as const,
    }),
    projectorsStopped: gauge({
      name: 'pledgeview_projectors_stopped',
      help: 'Whether a projector stopped with an error, and none leads the fold since: 1 or 0. /status tells the reason',
    }),
    stageLag: gauge({
      name: 'pledgeview_stage_lag_seconds',
      help: 'How far a stage is behind: fold, the age of the watermark',
      labelNames: ['stage'] as const,
    }),
    clickhouseUp: gauge({
      name: 'pledgeview_clickhouse_up',
      help: 'Whether ClickHouse answered this process at this scrape: 1 or 0',
    }),
    redisUp: gauge({
      name: 'pledgeview_redis_up',
      help: 'Whether Redis answers, by connection (limits, caches, portal): 1 or 0',
      labelNames: ['connection'] as const,
    }),
    mails: counter({
      name: 'pledgeview_mails_total',
      help: 'Mails that the portal gave to the mail server, by outcome (sent, failed), without those whose address the server refused',
      labelNames: ['outcome'] as const,
    }),
    usageFlushes: counter({
      name: 'pledgeview_usage_flushes_total',
      help: 'Attempts to write how often each API key was used, by outcome (written, failed)',
      labelNames: ['outcome'] as const,
    }),
    usageLostRequests: counter({
      name: 'pledgeview_usage_lost_requests_total',
      help: 'Requests that no usage counts, because they could not be written for minutes',
    }),
    cacheLookups: counter({
      name: 'pledgeview_cache_lookups_total',
      help: 'Lookups in a cache of the API (responses, lists, rows), by outcome: hit, or miss if ClickHouse or the list index had to be asked',
      labelNames: ['cache', 'outcome'] as const,
    }),
    requests: counter({
      name: 'pledgeview_http_requests_total',
      help: 'Requests of the public API, by method, route and status',
      labelNames: ['method', 'route', 'status'] as const,
    }),
    requestSeconds: histogram({
      name: 'pledgeview_http_request_seconds',
      help: 'Time to answer a request of the public API, by route',
      labelNames: ['route'] as const,
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    }),
  }
}
