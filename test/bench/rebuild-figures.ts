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
// Fewer samples do not give a 99th percentile.
const answersMin = 50
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
  const ceilingCpu = summarize(ceilings.map(({ cpuSeconds }) => (cpuSeconds * 1e6) / events))
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
  const read = phaseOf(quiet.run.phases, reading)
  const perRecord = (seconds: number) => (seconds * 1e6) / events
  return [
    figureOf('ceiling', 'records/s', ceiling),
    ...speedOf('rebuild', quiet.run),
    ...speedOf('under requests', asked.run),
    // Other work on the machine takes wall time, but hardly changes CPU time. On a busy machine these figures say more.
    figureOf('ceiling, CPU a record', 'us', ceilingCpu),
    {
      name: 'reading, CPU a record of the main thread',
      value: perRecord(read.mainThreadCpuSeconds),
      unit: 'us',
    },
    { name: 'reading, CPU a record of the process', value: perRecord(read.cpuSeconds), unit: 'us' },
    {
      name: 'ceiling / reading, by CPU of the main thread',
      value: ceilingCpu.median / perRecord(read.mainThreadCpuSeconds),
      unit: '',
    },
  ]
}

function phaseFigures(name: string, { phases }: RebuildRun): Figure[] {
  return [
    ...phases.flatMap(({ phase, seconds, cpuSeconds }) => [
      { name: `${name}, ${phase}`, value: seconds, unit: 's' },
      { name: `${name}, ${phase}, CPU of the process`, value: cpuSeconds, unit: 's' },
    ]),
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

function latencyFigures({ run, answersBefore, answers }: Measured['asked']): Figure[] {
  const refused = [...answersBefore, ...answers].filter(({ status }) => status !== 200).length
  const p99 = (some: readonly Answer[]) =>
    quantile(
      some.map(({ ms }) => ms),
      0.99,
    )
  const ended = run.phases.map(({ startedAtMs, seconds }) => startedAtMs + seconds * 1000)
  const byPhase = run.phases.map(({ phase, startedAtMs }, place) => ({
    phase,
    answers: answers.filter(({ dueAtMs }) => dueAtMs >= startedAtMs && dueAtMs < (ended[place] ?? 0)),
  }))
  return [
    { name: 'answers other than 200', value: refused, unit: '', target: { atMost: 0 } },
    ...latency('before', answersBefore),
    ...latency('while it rebuilds', answers),
    { name: 'p99 while it rebuilds / before', value: p99(answers) / p99(answersBefore), unit: '' },
    ...byPhase
      .filter(({ answers }) => answers.length >= answersMin)
      .flatMap(({ phase, answers }) => latency(`while ${phase}`, answers)),
    ...(['list', 'detail'] as const).flatMap(kind => [
      ...latency(
        `${kind}, before`,
        answersBefore.filter(answer => answer.kind === kind),
      ),
      ...latency(
        `${kind}, while it rebuilds`,
        answers.filter(answer => answer.kind === kind),
      ),
    ]),
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
