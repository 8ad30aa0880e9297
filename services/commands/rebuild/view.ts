/** What `pledgeview rebuild` prints for a person: the progress, the outcome and the differences. Pure. */
import type { Differences, Example } from '../../generations/differences.ts'
import {
  endPhases,
  isWorking,
  keptTables,
  type RebuildDetail,
  type RebuildProgress,
  type RebuildState,
  workPhases,
} from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { clock, counted, grouped } from '../../runtime/progress.ts'
import { printable, printableLines } from '../printable.ts'

/** `stopped`: it is not finished and no process works on it. The same request continues it. */
export type Outcome = 'running' | 'rebuilt' | 'compared' | 'dropped' | 'stopped'

export function outcomeOf({ phase, isAlive }: RebuildReport): Outcome {
  if (isAlive) return 'running'
  return endPhases.find(end => end === phase) ?? 'stopped'
}

/** For example `reading log: 43%, 125,000 records/s, 20:07 left, lag 12,340,000`. */
export function progressLine({ phase, detail: { progress } }: RebuildState): string {
  return progress ? `${phase}: ${progressText(progress)}` : phase
}

/** The outcome and the differences. A failure, or a rebuild that is not finished, is reported elsewhere. */
export function resultText(report: RebuildReport): string {
  const { detail } = report
  const { request, records, rejects, phaseMs, differences } = detail
  const time = secondsText(Object.values(phaseMs).reduce((sum, ms) => sum + ms, 0))
  const read = `${counted(records, 'record')} read${rejects > 0 ? `, ${grouped(rejects)} of them rejected` : ''}`
  const outcome = outcomeOf(report)
  switch (outcome) {
    case 'rebuilt': {
      const done = request.kind === 'rollback' ? 'The previous tables are live again' : 'Rebuilt'
      const kept = keptTables(report).replace('the', 'The')
      return `${done}, in ${time}: ${read}.\n${countsText(differences)}${kept} are kept: pledgeview rebuild rollback returns to them, pledgeview rebuild drop frees their disk.\n`
    }
    case 'compared':
      return `Compared, in ${time}: ${read}. The live tables are unchanged, and the new tables are dropped.\n${countsText(differences)}${differencesText(differences)}`
    case 'dropped':
      return 'All tables but the current ones are dropped.\n'
    case 'running':
    case 'stopped':
      return ''
    default:
      return outcome satisfies never
  }
}

/** In which fields campaigns differ, and some examples in full. */
function differencesText(differences: Differences | null): string {
  if (!differences) return ''
  const fields = Object.entries(differences.fields).sort(([, a], [, b]) => b - a)
  const width = Math.max(0, ...fields.map(([name]) => name.length))
  const lines = [
    ...(fields.length > 0 ? ['', 'Fields, and in how many campaigns they differ:'] : []),
    ...fields.map(([name, count]) => `  ${name.padEnd(width)}  ${grouped(count)}`),
    ...(differences.examples.length > 0 ? ['', 'Examples (live -> rebuilt):'] : []),
    ...differences.examples.flatMap(exampleLines),
  ]
  return lines.map(line => `${line}\n`).join('')
}

/** `pledgeview rebuild status`. */
export function statusText(report: RebuildReport | undefined): string {
  if (!report) return 'There has never been a rebuild.\n'
  const { id, phase, detail, isPreviousKept, isHalfDropped } = report
  const { request, startedAt, progress, failure } = detail
  const isOpen = isWorking(report)
  const kind = `${request.isDry ? 'dry run' : request.kind} ${id}`
  const lines = [
    ['rebuild', `${kind}, begun ${startedAt}`],
    ['phase', isOpen ? phase : outcomeOf(report)],
    ...(progress && isOpen ? [['progress', progressText(progress)]] : []),
    // The phases that are over, in their order, with the time that each took.
    ...workPhases.flatMap(name => {
      const ms = detail.phaseMs[name]
      return ms === undefined || name === phase ? [] : [[name, secondsText(ms)]]
    }),
    ...(isOpen ? [['process', processText(report)]] : []),
    ...(failure === null ? [] : [['failure', printableLines(failure)]]),
    ...(isPreviousKept
      ? [['previous', 'kept: rebuild rollback returns to them, rebuild drop frees their disk']]
      : []),
    ...(isHalfDropped ? [['dropped', 'not to the end: rebuild drop frees the rest of their disk']] : []),
  ]
  return lines.map(([name = '', text]) => `${name.padEnd(phaseWidth)}  ${text}\n`).join('')
}

/** What to do about a rebuild that is not finished. */
export function unfinishedText({ detail }: RebuildReport): string {
  const command = detail.request.kind === 'rollback' ? 'pledgeview rebuild rollback' : 'the same command'
  return `Run ${command} again to continue, or pledgeview rebuild drop to give it up.\n`
}

const phaseWidth = Math.max(...workPhases.map(phase => phase.length))

function progressText({ etaSeconds, unit, perSecond, lagRecords, ...done }: RebuildProgress): string {
  const left = clock(etaSeconds === null ? null : etaSeconds * 1000)
  const lag = lagRecords > 0 ? `, lag ${grouped(lagRecords)}` : ''
  return `${percentOf(done)}%, ${grouped(perSecond)} ${unit}/s, ${left} left${lag}`
}

function processText({ ageMs, isAlive }: RebuildReport): string {
  return isAlive
    ? 'alive'
    : `no process works on it; the last heartbeat was ${Math.round(ageMs / 1000)} s ago`
}

/** How much of the phase is done, in whole percent. If there is nothing to do, 100. */
function percentOf({ done, of }: Pick<RebuildProgress, 'done' | 'of'>): number {
  return of > 0 ? Math.floor((Math.min(done, of) / of) * 100) : 100
}

function countsText(differences: Differences | null): string {
  if (!differences) return ''
  const { same, added, removed, different, inMotion } = differences
  const counts = `${grouped(same)} the same, ${grouped(added)} added, ${grouped(removed)} removed, ${grouped(different)} different`
  const motion =
    inMotion > 0 ? ` ${grouped(inMotion)} more changed during the comparison, and are not counted.` : ''
  return `Campaigns: ${counts}.${motion}\n`
}

function exampleLines({ campaign_id, change, fields }: Example): string[] {
  return [
    `  ${printable(campaign_id)}: ${change}`,
    ...fields.map(({ field, live, rebuilt }) => `    ${field}: ${printable(live)} -> ${printable(rebuilt)}`),
  ]
}

function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/* What `pledgeview rebuild --json` prints. Pure. */

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
    seconds: Object.fromEntries(Object.entries(detail.phaseMs).map(([phase, ms]) => [phase, ms / 1000])),
    records: detail.records,
    rejects: detail.rejects,
    differences: detail.differences && differencesOf(detail.differences),
    failure: detail.failure,
  }
}

/** `pledgeview rebuild status --json`: the latest rebuild, or null if there has never been one. */
export function statusJson(report: RebuildReport | undefined): object {
  if (!report) return { rebuild: null }
  const { detail, ageMs, isAlive, isPreviousKept, isHalfDropped } = report
  const { request, startedAt } = detail
  return {
    rebuild: {
      ...resultJson(report),
      type: request.isDry ? 'dry-run' : request.kind,
      started_at: startedAt,
      is_alive: isAlive,
      last_sign_ms_ago: ageMs,
      is_previous_kept: isPreviousKept,
      is_half_dropped: isHalfDropped,
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

function differencesOf({ inMotion, ...counts }: Differences): object {
  return { ...counts, in_motion: inMotion }
}
