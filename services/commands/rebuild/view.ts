/** What `pledgeview rebuild` prints for a person: the progress, the outcome and the differences. Pure. */
import type { Differences, Example } from '../../generations/compare/differences.ts'
import {
  isWorking,
  keptTables,
  type RebuildProgress,
  type RebuildState,
  type WorkPhase,
  workPhases,
} from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { barText, clock, grouped } from '../../runtime/progress.ts'
import { printable, printableLines } from '../printable.ts'

/** `stopped`: it is not finished and no process works on it. The same request continues it. */
export type Outcome = 'running' | 'rebuilt' | 'compared' | 'aborted' | 'dropped' | 'stopped'

export function outcomeOf({ state, isAlive }: RebuildReport): Outcome {
  if (isAlive) return 'running'
  // A rollback that was given up leaves the state from before it.
  if (state.phase === 'rebuilt' && state.isAborting) return 'aborted'
  switch (state.phase) {
    case 'rebuilt':
    case 'compared':
    case 'aborted':
    case 'dropped':
      return state.phase
    default:
      return 'stopped'
  }
}

/** The line on a terminal: `reading log [####----] 43%  0:07 left  25,000 records/s  lag 234,000`. */
export function paintedText({ phase, detail: { progress, waitsFor } }: RebuildState): string {
  if (!progress) return waitsFor ? `${phase}: waits for ${waitsFor}` : `${phase} ...`
  const bar = barText(percentOf(progress) / 100, barWidth)
  return [`${phase} ${bar}`, `${leftOf(progress)} left`, rateText(progress), ...lagTexts(progress)].join('  ')
}

/** The line in a log: `reading log: 43%, 177,000 of 411,000 records, 25,000 records/s, 0:07 left, lag 234,000`. */
export function progressLine({ phase, detail: { progress, waitsFor } }: RebuildState): string {
  if (!progress) return waitsFor ? `${phase}: waits for ${waitsFor}` : phase
  const parts = [doneText(progress), rateText(progress), `${leftOf(progress)} left`, ...lagTexts(progress)]
  return `${phase}: ${parts.join(', ')}`
}

/** The phases that are over, in their order, with the time that each took. */
export function finishedPhases({ phase, detail }: RebuildState): { phase: WorkPhase; ms: number }[] {
  return workPhases.flatMap(name => {
    const ms = detail.phaseMs[name]
    return ms === undefined || name === phase ? [] : [{ phase: name, ms }]
  })
}

export function finishedLine({ phase, ms }: { phase: WorkPhase; ms: number }): string {
  return `${phase.padEnd(phaseWidth)}  ${secondsText(ms)}`
}

/** The outcome and the differences. A failure, or a rebuild that is not finished, is reported elsewhere. */
export function resultText(report: RebuildReport): string {
  const { detail } = report.state
  const { request, records, rejects, phaseMs, differences } = detail
  const time = secondsText(Object.values(phaseMs).reduce((sum, ms) => sum + ms, 0))
  const read = `${countText(records, 'record')} read${rejects > 0 ? `, ${grouped(rejects)} of them rejected` : ''}`
  const outcome = outcomeOf(report)
  switch (outcome) {
    case 'rebuilt': {
      const done = request.kind === 'rollback' ? 'The previous tables are live again' : 'Rebuilt'
      const kept = capitalized(keptTables(report.state))
      return `${done}, in ${time}: ${read}.\n${countsText(differences)}${kept} are kept: pledgeview rebuild rollback returns to them, pledgeview rebuild drop frees their disk.\n`
    }
    case 'compared':
      return `Compared, in ${time}: ${read}. The live tables are unchanged, and the new tables are dropped.\n${countsText(differences)}${differencesText(differences)}`
    case 'aborted':
      return 'The rebuild was given up. The live tables are unchanged.\n'
    case 'dropped':
      return `${capitalized(keptTables(report.state))} are dropped.\n`
    case 'running':
    case 'stopped':
      return ''
    default:
      return outcome satisfies never
  }
}

/** In which fields campaigns differ, and some examples in full. */
export function differencesText(differences: Differences | null): string {
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
  const { state, isAlive, isPreviousKept } = report
  const { request, startedAt, progress, failure, waitsFor } = state.detail
  const kind = `${request.isDry ? 'dry run' : request.kind === 'rollback' ? 'rollback' : 'rebuild'} ${state.id}`
  const lines = [
    ['rebuild', `${kind}, begun ${startedAt}`],
    ['phase', isWorking(state) ? state.phase : outcomeOf(report)],
    ...(waitsFor && isWorking(state) && isAlive ? [['waits for', waitsFor]] : []),
    ...(progress && isWorking(state) ? progressLines(progress) : []),
    ...finishedPhases(state).map(({ phase, ms }) => [phase, secondsText(ms)]),
    ...(isWorking(state) ? [['process', processText(state, isAlive)]] : []),
    ...(failure === null ? [] : [['failure', printableLines(failure)]]),
    ...(isPreviousKept
      ? [['previous', 'kept: rebuild rollback returns to them, rebuild drop frees their disk']]
      : []),
  ]
  return lines.map(([name = '', text]) => `${name.padEnd(phaseWidth)}  ${text}\n`).join('')
}

/** What to do about a rebuild that is not finished. */
export function unfinishedText({ state }: RebuildReport): string {
  const { phase, detail } = state
  const command = detail.request.kind === 'rollback' ? 'pledgeview rebuild rollback' : 'the same command'
  const isLate = phase === 'promoting'
  return `Run ${command} again to continue${isLate ? '' : ', or pledgeview rebuild abort to give it up'}.\n`
}

// With this width the whole line fits into 80 columns.
const barWidth = 12
const phaseWidth = Math.max(...workPhases.map(phase => phase.length))

function progressLines(progress: RebuildProgress): string[][] {
  return [
    ['done', doneText(progress)],
    ['rate', rateText(progress)],
    ['left', leftOf(progress)],
    ['lag', countText(progress.lagRecords, 'record')],
  ]
}

function processText({ ageMs }: RebuildState, isAlive: boolean): string {
  return isAlive
    ? 'alive'
    : `no process works on it; the last sign of life was ${Math.round(ageMs / 1000)} s ago`
}

function doneText(progress: RebuildProgress): string {
  const { done, of, unit } = progress
  return `${percentOf(progress)}%, ${grouped(done)} of ${grouped(of)} ${unit}`
}

/** How much of the phase is done, in whole percent. If there is nothing to do, 100. */
export function percentOf({ done, of }: RebuildProgress): number {
  return of > 0 ? Math.floor((Math.min(done, of) / of) * 100) : 100
}

function leftOf({ etaSeconds }: RebuildProgress): string {
  return clock(etaSeconds === null ? null : etaSeconds * 1000)
}

function rateText({ unit, perSecond }: RebuildProgress): string {
  return `${grouped(perSecond)} ${unit}/s`
}

function lagTexts({ lagRecords }: RebuildProgress): string[] {
  return lagRecords > 0 ? [`lag ${grouped(lagRecords)}`] : []
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

function countText(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
