/**
 * Compares two runs of the benches: the `--json` output of an earlier run, and this one. Each figure with its value then and now,
 * the ratio of the two, and its target. Pure.
 *
 * Figures of two machines are shown side by side all the same, with a warning: rates and times then say little, and ratios of one
 * run (those without a unit) still say something.
 */
import { type Machine, machineText } from './machine.ts'
import { type BenchReport, columnsText, type Figure, figureText, targetText } from './report.ts'

/** What `--json` prints. Of a run by an earlier version, `size` may be missing. */
export interface BenchRun {
  machine: Machine
  /** The platform of the benches that take `--campaigns` and `--pledges`. */
  size?: { campaigns: number; pledges: number } | undefined
  benches: BenchReport[]
}

/** A figure of both runs, or of one of them. */
export interface Compared {
  bench: string
  before?: Figure | undefined
  now?: Figure | undefined
  /** Now by then. Undefined if one of them is missing, or the earlier one is zero. */
  ratio?: number | undefined
}

// The same machine may report slightly more or less memory after an update of its system.
const memoryShareMax = 0.02

/** Every figure of the benches that this run has, in its order; then those that only the earlier run has. */
export function compareRuns(then: BenchRun, now: BenchRun): Compared[] {
  return now.benches.flatMap(({ bench, figures }) => {
    const earlier = then.benches.find(report => report.bench === bench)?.figures ?? []
    const isSame = (a: Figure, b: Figure) => a.name === b.name && a.unit === b.unit
    const both = figures.map((figure): Compared => {
      const before = earlier.find(one => isSame(one, figure))
      const ratio = before?.value ? figure.value / before.value : undefined
      return { bench, before, now: figure, ratio }
    })
    const gone = earlier.filter(figure => !figures.some(one => isSame(one, figure)))
    return [...both, ...gone.map(figure => ({ bench, before: figure }))]
  })
}

/** Why the two runs cannot simply be compared, a sentence each. */
export function warningsOf(then: BenchRun, now: BenchRun): string[] {
  const differs = (['cpu', 'cores', 'node', 'chdb'] as const).filter(
    name => then.machine[name] !== now.machine[name],
  )
  const memoryBytes = Math.abs(then.machine.memoryBytes - now.machine.memoryBytes)
  const hasOtherMemory = memoryBytes > memoryShareMax * now.machine.memoryBytes
  const names = [...differs, ...(hasOtherMemory ? ['memory'] : [])]
  const warnings: string[] = []
  if (names.length > 0) {
    warnings.push(
      `The machines differ (${names.join(', ')}): compare only figures without a unit, which are ratios within one run.`,
    )
  }
  if (then.size && now.size && JSON.stringify(then.size) !== JSON.stringify(now.size)) {
    warnings.push('The sizes differ (--campaigns, --pledges): figures of benches that use them differ too.')
  }
  return warnings
}

/** The comparison as a page. */
export function comparisonText(then: BenchRun, now: BenchRun): string {
  const all = compareRuns(then, now)
  const pages = now.benches.map(({ bench }) => {
    const rows = all.filter(one => one.bench === bench).map(rowOf)
    return [bench, columnsText([['', 'then', 'now', 'now / then', 'target'], ...rows]), ''].join('\n')
  })
  return [
    'Compared with an earlier run',
    `  then: ${machineText(then.machine).trim()}`,
    `  now:  ${machineText(now.machine).trim()}`,
    ...warningsOf(then, now).map(warning => `  Warning: ${warning}`),
    '',
    ...pages,
  ].join('\n')
}

function rowOf({ before, now, ratio }: Compared): string[] {
  return [
    (now ?? before)?.name ?? '',
    before ? figureText(before) : 'new',
    now ? figureText(now) : 'gone',
    ratio === undefined ? '' : ratio.toFixed(2),
    now ? targetText(now) : '',
  ]
}
