/**
 * How each cost grows: measured at 1x, 10x and, as long as it fits into the time, 100x of campaigns, pledges, API keys and
 * rows of the batch log, each with the others fixed. Everything beyond is derived from the slope, and is called derived.
 */
import { startBenchProcess } from '../bench-process.ts'
import type { PlatformSize } from '../platform/platform.ts'
import type { BenchReport } from '../report.ts'
import type { Workspace } from '../workspace.ts'
import type { GrowthBatches } from './batches.ts'
import { type Curve, growthFigures, type Point } from './curve.ts'
import type { GrowthIndex, GrowthInput, GrowthKeys, GrowthOrder, GrowthReady } from './service.ts'

/** The sizes at 1x. */
const base = { campaigns: 4_000, pledges: 100_000, keys: 1_000, batches: 10_000 }
const measuredTimes = [1, 10, 100] as const
// A step that would take longer than this, judged by the one before it, is derived instead.
const stepMsMax = 150_000
const msMax = 600_000

/** Costs of one step, by name, with their unit. */
type Costs = Record<string, { value: number; unit: string }>

export async function benchGrowth(workspace: Workspace): Promise<BenchReport> {
  const platformOf = (times: Partial<Record<keyof PlatformSize, number>>): PlatformSize => ({
    campaigns: base.campaigns * (times.campaigns ?? 1),
    pledges: base.pledges * (times.pledges ?? 1),
  })
  const failures: string[] = []
  const grow = (of: string, costsAt: (times: number) => Promise<Costs>) => growthOf(of, costsAt, failures)
  const curves = [
    ...(await grow('campaigns', campaigns => platformCosts(workspace, platformOf({ campaigns })))),
    ...(await grow('pledges', pledges => platformCosts(workspace, platformOf({ pledges })))),
    ...(await onPlatform(workspace, platformOf({}), async service => [
      ...(await grow('keys', times => keyCosts(service, times * base.keys))),
      ...(await grow('batches', times => batchCosts(service, times * base.batches))),
    ])),
  ]
  return {
    bench: 'growth',
    notes: [
      `1x: ${base.campaigns} campaigns with 5 tiers each, ${base.pledges} pledges, ${base.keys} keys, ${base.batches} batches. Each line grows one of them.`,
      'Slope 0: the cost does not grow; 1: it grows as the size does. What is derived comes from the slope of the last two that',
      `were measured. 100x is left out if 10x took more than ${stepMsMax / 10_000} s.`,
      ...failures,
    ],
    figures: growthFigures(curves),
  }
}

/** Measures at each multiple, until the next one would take too long or one fails. The first one must not fail. */
async function growthOf(
  of: string,
  costsAt: (times: number) => Promise<Costs>,
  failures: string[],
): Promise<Curve[]> {
  const steps: { times: number; costs: Costs }[] = []
  for (const times of measuredTimes) {
    const startedMs = performance.now()
    try {
      steps.push({ times, costs: await costsAt(times) })
    } catch (error) {
      if (steps.length === 0) throw error
      failures.push(
        `${times}x ${of} could not be measured: ${error instanceof Error ? error.message : error}`,
      )
      break
    }
    if ((performance.now() - startedMs) * 10 > stepMsMax) break
  }
  const pointsOf = (cost: string): Point[] =>
    steps.flatMap(({ times, costs }) => (costs[cost] ? [{ times, value: costs[cost].value }] : []))
  return Object.entries(steps[0]?.costs ?? {}).map(([cost, { unit }]) => ({
    cost,
    of,
    unit,
    points: pointsOf(cost),
  }))
}

interface Service {
  ready: GrowthReady
  ask<Answer>(order: GrowthOrder): Promise<Answer>
}

/** The process and its files are gone when this resolves. */
async function onPlatform<T>(
  workspace: Workspace,
  size: PlatformSize,
  work: (service: Service) => Promise<T>,
): Promise<T> {
  const directory = workspace.directory('growth')
  const input: GrowthInput = { directory, ...size }
  const service = await startBenchProcess<GrowthReady>({ script: 'growth/service.ts', input, msMax })
  try {
    return await work(service)
  } finally {
    await service.end()
    workspace.discard(directory)
  }
}

function platformCosts(workspace: Workspace, size: PlatformSize): Promise<Costs> {
  return onPlatform(workspace, size, async ({ ready, ask }) => {
    const { bytes, cpuMs } = await ask<GrowthIndex>({ order: 'index' })
    return {
      stats: { value: ready.statsMs, unit: 'ms' },
      'list index, memory': { value: bytes / 1e6, unit: 'MB' },
      'list index, CPU to load': { value: cpuMs, unit: 'ms' },
      'disk of the pledge ledger': { value: ready.ledgerBytes / 1e6, unit: 'MB' },
    }
  })
}

async function batchCosts(service: Service, batches: number): Promise<Costs> {
  const costs = await service.ask<GrowthBatches>({ order: 'batches', batches })
  return {
    'batch log, status': { value: costs.statusMs, unit: 'ms' },
    'batch log, disk': { value: costs.diskBytes / 1e6, unit: 'MB' },
  }
}

async function keyCosts(service: Service, keys: number): Promise<Costs> {
  const { loadMs } = await service.ask<GrowthKeys>({ order: 'keys', keys })
  return { 'load of all keys': { value: loadMs, unit: 'ms' } }
}
