/** What `pledgeview rebuild --json` prints. Pure. */
import type { Differences } from '../../generations/differences.ts'
import type { RebuildDetail, RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { outcomeOf, percentOf } from './view.ts'

/** A progress line of a running rebuild. */
export function progressJson({ id, phase, detail }: RebuildState): object {
  return { type: 'progress', id, phase, ...progressOf(detail) }
}

/** The last line. `outcome`: rebuilt, compared, dropped, or stopped. */
export function resultJson(report: RebuildReport): object {
  const { id, phase, detail } = report
  return {
    type: 'result',
    id,
    outcome: outcomeOf(report),
    phase,
    seconds: secondsOf(detail),
    records: detail.records,
    rejects: detail.rejects,
    differences: detail.differences && differencesOf(detail.differences),
    failure: detail.failure,
  }
}

/** `pledgeview rebuild status --json`: the latest rebuild, or null if there has never been one. */
export function statusJson(report: RebuildReport | undefined): object {
  if (!report) return { rebuild: null }
  const { detail, ageMs, isAlive, isPreviousKept } = report
  const { request, startedAt } = detail
  return {
    rebuild: {
      ...resultJson(report),
      type: request.isDry ? 'dry-run' : request.kind,
      started_at: startedAt,
      is_alive: isAlive,
      last_sign_ms_ago: ageMs,
      is_previous_kept: isPreviousKept,
      ...progressOf(detail),
    },
  }
}

function progressOf({ progress }: RebuildDetail): object {
  return {
    percent: progress && percentOf(progress),
    done: progress?.done ?? null,
    of: progress?.of ?? null,
    unit: progress?.unit ?? null,
    per_second: progress?.perSecond ?? null,
    eta_seconds: progress?.etaSeconds ?? null,
    lag_records: progress?.lagRecords ?? null,
  }
}

function secondsOf({ phaseMs }: RebuildDetail): Record<string, number> {
  return Object.fromEntries(Object.entries(phaseMs).map(([phase, ms]) => [phase, ms / 1000]))
}

function differencesOf({ inMotion, ...counts }: Differences): object {
  return { ...counts, in_motion: inMotion }
}
