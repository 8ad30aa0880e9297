/** The fold of one campaign with very many pledges: how long a fold takes after some pledges more, in the ledger's usual state. */
import { startBenchProcess } from './bench-process.ts'
import type { FoldAnswer, FoldInput, FoldRequest } from './fold-service.ts'
import { type BenchReport, type Figure, figureOf } from './report.ts'
import { summarize } from './samples.ts'
import type { Workspace } from './workspace.ts'

const sizes = [
  { pledges: 1_000_000, atMost: 100 },
  { pledges: 4_000_000, atMost: 500 },
]
const folds = 9
const warmUps = 2
const added = 200
const startMsMax = 180_000

export async function benchFold(workspace: Workspace): Promise<BenchReport> {
  const figures: Figure[] = []
  for (const { pledges, atMost } of sizes) {
    const answers = await measure(workspace, pledges)
    const millions = `${pledges / 1e6} M pledges`
    figures.push(
      figureOf(`fold of a campaign with ${millions}`, 'ms', summarize(answers.map(({ foldMs }) => foldMs)), {
        atMost,
      }),
      {
        name: `parts of its ledger at the end, ${millions}`,
        value: answers.at(-1)?.parts ?? 0,
        unit: 'parts',
      },
    )
  }
  const notes = [
    `One campaign's fold, from the batch log to the end of what is recorded, each after ${added} new pledges with ids in no`,
    'order. So the parts of the ledger overlap, and every fold merges them as it reads.',
  ]
  return { bench: 'fold', notes, figures }
}

async function measure(workspace: Workspace, pledges: number): Promise<FoldAnswer[]> {
  const input: FoldInput = { directory: workspace.directory(`fold-${pledges}`), pledges }
  const service = await startBenchProcess({ script: 'fold-service.ts', input, msMax: startMsMax })
  try {
    const answers: FoldAnswer[] = []
    const request: FoldRequest = { added }
    for (let n = 0; n < warmUps + folds; n++) answers.push(await service.ask<FoldAnswer>(request))
    return answers.slice(warmUps)
  } finally {
    await service.end()
  }
}
