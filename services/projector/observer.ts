/** Reports batches, quarantine and steps of the clock to the metrics and to the log. */
import { topics } from '../../contracts/events/event.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { loggedReason } from '../tables/rejects.ts'
import type { QuarantineChange, QuarantinedCampaign } from './fold/quarantine.ts'
import type { ClockStep } from './fold/watermark.ts'
import type { Batch } from './ingest/batch.ts'
import { type ComparedVersions, outcomes } from './producers/versions.ts'

// Each rejected record of a batch gets a log line, up to this many. All of them are in the dead-letter queue and counted.
const loggedRejectsMax = 10

const quarantineTexts: Readonly<Record<QuarantineChange['event'], string>> = {
  quarantined: 'a campaign could not be folded within its bounds; it is in quarantine, and the others go on',
  'folded alone': 'a campaign in quarantine was folded alone',
  'not folded': 'a campaign in quarantine could not be folded alone either; it is tried again later',
  released: 'a campaign is not in quarantine any more',
}

export function createObserver({ metrics, logger }: Pick<Runtime, 'metrics' | 'logger'>) {
  startCounters(metrics)
  return {
    onBatch(batch: Batch, { writeMs }: { writeMs: number }) {
      for (const [topic, accepted] of Object.entries(batch.eventsByTopic)) {
        if (accepted > 0) metrics.events.inc({ topic, outcome: 'accepted' }, accepted)
      }
      for (const [topic, { records }] of batch.misplaced) {
        metrics.misplacedRecords.inc({ topic }, records)
      }
      for (const { record } of batch.rejects) metrics.events.inc({ topic: record.topic, outcome: 'rejected' })
      for (const { record, reason } of batch.rejects.slice(0, loggedRejectsMax)) {
        const { topic, partition, offset } = record
        const ofBatch = batch.rejects.length
        const place = { topic, partition, offset, reason: loggedReason(reason), ofBatch }
        logger.warn(place, 'a record was rejected')
      }
      metrics.batchSeconds.observe(writeMs / 1000)
      logger.debug({ records: batch.records, rejects: batch.rejects.length, writeMs }, 'batch')
    },

    onCompared({ topic, counts }: ComparedVersions) {
      for (const outcome of outcomes) metrics.comparedVersions.inc({ topic, outcome }, counts[outcome])
    },

    onRetry(stage: 'schemas' | 'ingest', error: Error) {
      metrics.retries.inc({ stage })
      const failed =
        stage === 'schemas' ? 'the schema registry did not answer' : 'ClickHouse did not accept it'
      logger.warn({ stage, error: error.message }, `${failed}; trying again`)
    },

    onClockStep({ stepMs, behindMs }: ClockStep) {
      metrics.clockSteps.inc({ direction: stepMs < 0 ? 'back' : 'forward' })
      logger.warn(
        { stepMs, behindMs },
        'the clock of ClickHouse stepped; no change is lost, but until the clock has passed the latest updated_at, every ' +
          'poll delivers what changed since then again',
      )
    },

    onQuarantine(all: readonly QuarantinedCampaign[], change?: QuarantineChange) {
      metrics.quarantine.reset()
      for (const { campaign, failures } of all) metrics.quarantine.set({ campaign }, failures)
      if (!change) return
      const { event, ...found } = change
      const isGood = event === 'folded alone' || event === 'released'
      logger[isGood ? 'info' : 'warn'](found, quarantineTexts[event])
    },
  }
}

/** Prometheus sees an increase only of a counter that it has seen before, so what alerts watch begins at 0. */
function startCounters({ events, misplacedRecords, comparedVersions, retries, clockSteps }: Metrics): void {
  for (const topic of topics) {
    for (const outcome of ['accepted', 'rejected']) events.inc({ topic, outcome }, 0)
    misplacedRecords.inc({ topic }, 0)
  }
  for (const topic of ['campaigns', 'pledges', 'api-keys']) {
    for (const outcome of outcomes) comparedVersions.inc({ topic, outcome }, 0)
  }
  for (const stage of ['schemas', 'ingest', 'fold', 'rewrite']) retries.inc({ stage }, 0)
  for (const direction of ['back', 'forward']) clockSteps.inc({ direction }, 0)
}
