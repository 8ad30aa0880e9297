/** The rebuild bench's report of its measurements. Pure. */
import type { WorkPhase } from '../../services/generations/rebuild-log.ts'
import type { IngestRunResult } from './ingest-run.ts'
import type { PlatformSize } from './platform.ts'
import type { RebuildFilled } from './rebuild-fill.ts'
import { eventCount } from './rebuild-history.ts'
import type { Answer } from './rebuild-requests.ts'
import type { PhaseRun, RebuildRun } from './rebuild-service.ts'
import type { Taken } from './rebuild-watch.ts'
import { type Figure, figureOf } from './report.ts'
import { quantile, summarize } from './samples.ts'

export interface Rebuilt {
  run: RebuildRun
  taken: Taken
}

export interface Measured {
  size: PlatformSize
  filled: RebuildFilled
  ceilings: IngestRunResult[]
  atRest: Taken
  /** Without requests. */
  quiet: Rebuilt
  /** The size of the live model's tables. */
  tablesBytes: number
  /** The size of all table files after the rebuild, including the previous tables. */
  diskBytes: number
  asked: Rebuilt & { answersBefore: Answer[]; answers: Answer[] }
}

const reading: WorkPhase = 'reading log'
const ratioMin = 0.5

export function rebuildFigures(measured: Measured): Figure[] {
  const { filled, size } = measured
  return [
    { name: 'journal', value: filled.journalBytes / 1e6, unit: 'MB' },
    { name: 'events appended', value: eventCount(size) / filled.appendSeconds, unit: 'events/s' },
    {
      name: 'live ledger filled, no other load',
      value: eventCount(size) / filled.ledgerSeconds,
      unit: 'records/s',
    },
    { name: 'live model folded whole', value: filled.foldSeconds, unit: 's' },
    ...speedFigures(measured),
    ...phaseFigures('rebuild', measured.quiet.run),
    ...phaseFigures('under requests', measured.asked.run),
    ...roomFigures(measured),
    ...latencyFigures(measured.asked),
  ]
}

function speedFigures({ size, ceilings, quiet, asked }: Measured): Figure[] {
  const events = eventCount(size)
  const ceiling = summarize(ceilings.map(({ seconds }) => events / seconds))
  const speedOf = (name: string, { phases, seconds }: RebuildRun): Figure[] => {
    const read = phaseOf(phases, reading)
    const target = { atLeast: ratioMin }
    return [
      { name: `${name}, reading`, value: events / read.seconds, unit: 'records/s' },
      { name: `${name}, whole`, value: events / seconds, unit: 'records/s' },
      { name: `${name}, reading / ceiling`, value: events / read.seconds / ceiling.median, unit: '', target },
      { name: `${name}, whole / ceiling`, value: events / seconds / ceiling.median, unit: '', target },
    ]
  }
  return [
    figureOf('ceiling', 'records/s', ceiling),
    ...speedOf('rebuild', quiet.run),
    ...speedOf('under requests', asked.run),
  ]
}

function phaseFigures(name: string, { phases, swap }: RebuildRun): Figure[] {
  return [
    ...phases.map(({ phase, seconds }) => ({ name: `${name}, ${phase}`, value: seconds, unit: 's' })),
    { name: `${name}, fold paused for`, value: swap.pausedMs, unit: 'ms' },
    { name: `${name}, from stamp to swap`, value: swap.stampedMs, unit: 'ms' },
  ]
}

function roomFigures({ atRest, quiet, asked, tablesBytes, diskBytes }: Measured): Figure[] {
  const megabytes = (name: string, bytes: number): Figure => ({ name, value: bytes / 1e6, unit: 'MB' })
  return [
    megabytes('memory, live model at rest', atRest.residentBytes.median),
    megabytes('memory, rebuild, typical', quiet.taken.residentBytes.median),
    megabytes('memory, rebuild, peak', quiet.taken.residentBytes.max),
    megabytes('memory, under requests, typical', asked.taken.residentBytes.median),
    megabytes('memory, under requests, peak', asked.taken.residentBytes.max),
    megabytes('disk, live tables', tablesBytes),
    megabytes('disk, all tables, most while it rebuilds', quiet.taken.diskBytes.max),
    megabytes('disk, all tables, when it is done', diskBytes),
  ]
}

function latencyFigures({ answersBefore, answers }: Measured['asked']): Figure[] {
  const refused = [...answersBefore, ...answers].filter(({ status }) => status !== 200).length
  const p99 = (some: readonly Answer[]) =>
    quantile(
      some.map(({ ms }) => ms),
      0.99,
    )
  return [
    { name: 'answers other than 200', value: refused, unit: '', target: { atMost: 0 } },
    ...latency('before', answersBefore),
    ...latency('while it rebuilds', answers),
    { name: 'p99 while it rebuilds / before', value: p99(answers) / p99(answersBefore), unit: '' },
  ]
}

function latency(name: string, answers: readonly Answer[]): Figure[] {
  const ms = answers.map(answer => answer.ms)
  return [
    figureOf(`${name}, p50`, 'ms', summarize(ms)),
    { name: `${name}, p99`, value: quantile(ms, 0.99), unit: 'ms' },
  ]
}

function phaseOf(phases: readonly PhaseRun[], name: WorkPhase): PhaseRun {
  const found = phases.find(({ phase }) => phase === name)
  if (!found) throw new Error(`the rebuild had no phase ${name}`)
  return found
}
