/** What a shard costs: the CPU time of an event, a page and the totals on clusters of one, two and three real servers. */
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBenchProcess } from './bench-process.ts'
import { prepareJournal } from './ingest-journal.ts'
import { type BenchReport, type Figure, figureOf } from './report.ts'
import { summarize } from './samples.ts'
import type { ShardsRunInput, ShardsRunResult } from './shards-run.ts'
import type { Workspace } from './workspace.ts'

const sizes = [1, 2, 3]
const rounds = 3
const runMsMax = 600_000

/** Runs all sizes in turn, several times. */
export async function benchShards(workspace: Workspace): Promise<BenchReport> {
  const journal = await prepareJournal(workspace)
  const results = new Map<number, ShardsRunResult[]>(sizes.map(shards => [shards, []]))
  for (let round = 0; round < rounds; round++) {
    for (const shards of sizes) {
      const directory = workspace.directory('shards')
      const path = join(directory, 'journal.sqlite')
      copyFileSync(journal.path, path)
      const input: ShardsRunInput = { journal: path, shards }
      const result = await runBenchProcess<ShardsRunResult>({
        script: 'shards-run.ts',
        input,
        msMax: runMsMax,
      })
      if (result.records !== journal.events)
        throw new Error(`the projector read ${result.records} of ${journal.events} records`)
      results.get(shards)?.push(result)
      workspace.discard(directory)
    }
  }
  return {
    bench: 'shards',
    notes: [
      `${journal.events} events of ${journal.source}, from the journal to folded read tables on a cluster of real servers without`,
      `replicas, ${rounds} runs of each size in turn. All figures are CPU time; a page has 20 campaigns.`,
    ],
    figures: [...results].flatMap(([shards, runs]) => figuresOf(shards, runs)),
  }
}

function figuresOf(shards: number, runs: readonly ShardsRunResult[]): Figure[] {
  const on = shards === 1 ? 'on 1 shard' : `on ${shards} shards`
  const perEvent = (seconds: (run: ShardsRunResult) => number) =>
    summarize(runs.map(run => (seconds(run) * 1e6) / run.records))
  return [
    figureOf(
      `projector, main thread, an event ${on}`,
      'us',
      perEvent(run => run.projectorSeconds),
    ),
    figureOf(
      `all servers, an event ${on}`,
      'us',
      perEvent(run => run.serversSeconds),
    ),
    figureOf(`all servers, a page ${on}`, 'ms', summarize(runs.map(run => run.pageMs))),
    figureOf(`all servers, the totals ${on}`, 'ms', summarize(runs.map(run => run.totalsMs))),
  ]
}
