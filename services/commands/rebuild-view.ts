/** What `pledgeview rebuild` says to a person: how far it is, how it ended, what it changes. Pure. */
import type { RebuildReport } from '../rebuild/desk.ts'
import type { Differences, Example } from '../rebuild/differences.ts'
import {
  isWorking,
  type RebuildProgress,
  type RebuildState,
  type WorkPhase,
  workPhases,
} from '../rebuild/rebuild-log.ts'
import { barText, clock, grouped, megabytes } from '../shared/progress.ts'

/** `stopped`: it is not finished and nobody is at it; the same request goes on. */
export type Outcome = 'running' | 'rebuilt' | 'compared' | 'aborted' | 'dropped' | 'stopped'

export function outcomeOf({ state, isAlive }: RebuildReport): Outcome {
  if (isAlive) return 'running'
  // A way back that was given up leaves what there was before it.
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

/** The line of a terminal: `reading log [####----] 43%  0:07 left  25,000 records/s  lag 234,000`. */
export function paintedText({ phase, detail: { progress } }: RebuildState): string {
  if (!progress) return `${phase} ...`
  const bar = barText(percentOf(progress) / 100, barWidth)
  return [`${phase} ${bar}`, `${leftOf(progress)} left`, rateText(progress), ...lagTexts(progress)].join('  ')
}

/** The same for a log file: `reading log: 43%, 177,000 of 411,000 records, 25,000 records/s, 0:07 left, lag 234,000`. */
export function progressLine({ phase, detail: { progress } }: RebuildState): string {
  if (!progress) return phase
  const parts = [doneText(progress), rateText(progress), `${leftOf(progress)} left`, ...lagTexts(progress)]
  return `${phase}: ${parts.join(', ')}`
}

/** Of these phases, in their order, those that it has left behind, with the time that each took. */
export function finishedPhases({ phase, detail }: RebuildState): { phase: WorkPhase; ms: number }[] {
  return workPhases.flatMap(name => {
    const ms = detail.phaseMs[name]
    return ms === undefined || name === phase ? [] : [{ phase: name, ms }]
  })
}

export function finishedLine({ phase, ms }: { phase: WorkPhase; ms: number }): string {
  return `${phase.padEnd(phaseWidth)}  ${secondsText(ms)}`
}

/** How it ended and what it changed. A failure, or what was not finished, is told elsewhere. */
export function resultText(report: RebuildReport): string {
  const { detail } = report.state
  const { request, records, rejects, phaseMs, differences } = detail
  const time = secondsText(Object.values(phaseMs).reduce((sum, ms) => sum + ms, 0))
  const read = `${countText(records, 'record')} read${rejects > 0 ? `, ${grouped(rejects)} of them rejects` : ''}`
  const outcome = outcomeOf(report)
  switch (outcome) {
    case 'rebuilt': {
      const done = request.kind === 'back' ? 'The generation before is live again' : 'Rebuilt'
      const kept = request.kind === 'back' ? 'The generation that it replaced' : 'The generation before'
      return `${done}, in ${time}: ${read}.\n${countsText(differences)}${kept} is kept: pledgeview rebuild back returns to it, pledgeview rebuild drop frees its disk.\n`
    }
    case 'compared':
      return `Compared, in ${time}: ${read}. The live model is as it was, and nothing is left of the other.\n${countsText(differences)}${differencesText(differences)}`
    case 'aborted':
      return 'The rebuild was given up. The live model is as it was.\n'
    case 'dropped':
      return 'The generation before the rebuild is dropped.\n'
    case 'running':
    case 'stopped':
      return ''
    default:
      return outcome satisfies never
  }
}

/** In which fields campaigns differ, and some of them in full. */
export function differencesText(differences: Differences | null): string {
  if (!differences) return ''
  const fields = Object.entries(differences.fields).sort(([, a], [, b]) => b - a)
  const width = Math.max(0, ...fields.map(([name]) => name.length))
  const lines = [
    ...(fields.length > 0 ? ['', 'Fields, and in how many campaigns they differ:'] : []),
    ...fields.map(([name, count]) => `  ${name.padEnd(width)}  ${grouped(count)}`),
    ...(differences.examples.length > 0 ? ['', 'For example (live -> rebuilt):'] : []),
    ...differences.examples.flatMap(exampleLines),
  ]
  return lines.map(line => `${line}\n`).join('')
}

/** `pledgeview rebuild status`. */
export function statusText(report: RebuildReport | undefined): string {
  if (!report) return 'Nothing was ever rebuilt.\n'
  const { state, isAlive, isPreviousKept } = report
  const { request, startedAt, progress, failure } = state.detail
  const kind = `${request.isDry ? 'dry run' : request.kind === 'back' ? 'way back' : 'rebuild'} ${state.id}`
  const lines = [
    ['rebuild', `${kind}, begun ${startedAt}`],
    ['phase', isWorking(state) ? state.phase : outcomeOf(report)],
    ...(progress && isWorking(state) ? progressLines(progress) : []),
    ...finishedPhases(state).map(({ phase, ms }) => [phase, secondsText(ms)]),
    ...(isWorking(state) ? [['process', processText(state, isAlive)]] : []),
    ...(failure === null ? [] : [['failure', failure]]),
    ...(isPreviousKept
      ? [['previous', 'kept: rebuild back returns to it, rebuild drop frees its disk']]
      : []),
  ]
  return lines.map(([name = '', text]) => `${name.padEnd(phaseWidth)}  ${text}\n`).join('')
}

/** What is left to do about one that is not finished. */
export function unfinishedText({ state }: RebuildReport): string {
  const { phase, detail } = state
  const command = detail.request.kind === 'back' ? 'pledgeview rebuild back' : 'The same command'
  const isLate = phase === 'exchanging' || phase === 'finishing'
  return `${command} again goes on where it was${isLate ? '' : '; pledgeview rebuild abort gives it up'}.\n`
}

// With it, all that there is to say fits into 80 columns.
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
  return isAlive ? 'alive' : `none is at it; last heard of ${Math.round(ageMs / 1000)} s ago`
}

function doneText(progress: RebuildProgress): string {
  const { done, of } = progress
  const amount = amountOf(progress)
  const unit = progress.unit === 'bytes' ? '' : ` ${progress.unit}`
  return `${percentOf(progress)}%, ${amount(done)} of ${amount(of)}${unit}`
}

/** How much of the phase is done, in whole percent; all of nothing is 100. */
export function percentOf({ done, of }: RebuildProgress): number {
  return of > 0 ? Math.floor((Math.min(done, of) / of) * 100) : 100
}

function leftOf({ etaSeconds }: RebuildProgress): string {
  return clock(etaSeconds === null ? null : etaSeconds * 1000)
}

function rateText({ unit, perSecond }: RebuildProgress): string {
  return unit === 'bytes' ? `${megabytes(perSecond)}/s` : `${grouped(perSecond)} ${unit}/s`
}

function lagTexts({ lagRecords }: RebuildProgress): string[] {
  return lagRecords > 0 ? [`lag ${grouped(lagRecords)}`] : []
}

function amountOf({ unit }: RebuildProgress): (amount: number) => string {
  return unit === 'bytes' ? megabytes : grouped
}

function countsText(differences: Differences | null): string {
  if (!differences) return ''
  const { same, added, removed, different, inMotion } = differences
  const counts = `${grouped(same)} the same, ${grouped(added)} added, ${grouped(removed)} removed, ${grouped(different)} different`
  const motion =
    inMotion > 0 ? ` ${grouped(inMotion)} more changed while the two were compared, and are not counted.` : ''
  return `Campaigns: ${counts}.${motion}\n`
}

function exampleLines({ campaign_id, change, fields }: Example): string[] {
  return [
    `  ${campaign_id}: ${change}`,
    ...fields.map(({ field, live, rebuilt }) => `    ${field}: ${live} -> ${rebuilt}`),
  ]
}

function countText(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
