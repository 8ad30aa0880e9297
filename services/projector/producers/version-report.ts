/** Reports stale and conflicting records: to the metrics at once; to the log and the projector log the first ones at once, later ones once a minute. */
import type { Metrics } from '../../runtime/ops/metrics.ts'
import type { ProjectorNote } from '../projector-log.ts'
import { type ComparedVersions, outcomes } from './versions.ts'

export interface VersionReportDependencies {
  metrics: Metrics
  /** Writes to the program's log. */
  warn: (found: object, message: string) => void
  /** Writes to the projector log. It is called once at a time. */
  write: (note: ProjectorNote) => Promise<void>
  onFailure: (error: Error) => void
  monotonicMs: () => number
}

export interface VersionReport {
  note(found: ComparedVersions): void
  /** Reports what is left. */
  close(): Promise<void>
}

type Detail = Extract<ProjectorNote, { kind: 'versions' }>['detail']

const examplesMax = 10
const reportMsMin = 60_000
const message =
  'a producer wrote versions that are not higher than those before them (stale), or one version for two states (conflicting); ' +
  'the outcome is that of the highest version (contracts/events)'

export function createVersionReport({
  metrics,
  warn,
  write,
  onFailure,
  monotonicMs,
}: VersionReportDependencies): VersionReport {
  const pending = new Map<string, Detail>()
  let reportedAt = Number.NEGATIVE_INFINITY
  let writing: Promise<void> = Promise.resolve()

  function report(): void {
    reportedAt = monotonicMs()
    for (const detail of pending.values()) {
      warn(detail, message)
      writing = writing.then(() => write({ kind: 'versions', detail })).catch(onFailure)
    }
    pending.clear()
  }

  return {
    note({ topic, counts, examples }) {
      for (const outcome of outcomes) metrics.comparedVersions.inc({ topic, outcome }, counts[outcome])
      if (counts.stale + counts.conflicting === 0) return
      const {
        stale,
        conflicting,
        examples: before,
      } = pending.get(topic) ?? { stale: 0, conflicting: 0, examples: [] }
      pending.set(topic, {
        topic,
        stale: stale + counts.stale,
        conflicting: conflicting + counts.conflicting,
        examples: [...before, ...examples].slice(0, examplesMax),
      })
      if (monotonicMs() - reportedAt >= reportMsMin) report()
    },
    async close() {
      report()
      await writing
    },
  }
}
