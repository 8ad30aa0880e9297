/**
 * Ingest: how fast the projector reads a whole history, compared with a ceiling that reads the same journal in the same
 * slices and decodes each event in full with avsc, by the same rules, without hashing, rows or ClickHouse. The projector
 * transcodes ordinary pledges without decoding them. The ceiling does not, so it stays the same peer from version to version.
 */
import { copyFileSync } from 'node:fs'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { runBenchProcess } from '../bench-process.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { ratioOfPairs, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { type PreparedJournal, prepareJournal } from './journal.ts'
import type { IngestRunInput, IngestRunResult } from './run.ts'

const pairs = 5
const runMsMax = 120_000

/** Runs the pairs, ceiling first. */
export async function benchIngest(workspace: Workspace): Promise<BenchReport> {
  const journal = await prepareJournal(workspace)
  const ceilings: IngestRunResult[] = []
  const ours: IngestRunResult[] = []
  for (let pair = 0; pair < pairs; pair++) {
    ceilings.push(await run(workspace, 'ceiling', journal))
    ours.push(await run(workspace, 'projector', journal))
  }
  return {
    bench: 'ingest',
    notes: [
      `${journal.events} events of ${journal.source}, from the journal to folded read tables, in a separate process,`,
      `${pairs} runs, alternating with the ceiling: the same journal, only read, and each event decoded in full with avsc.`,
    ],
    figures: figures(journal, ceilings, ours),
  }
}

/** In a data directory of its own: the service refuses one whose journal was read, and that has no secrets. */
async function run(
  workspace: Workspace,
  kind: IngestRunInput['kind'],
  { path, events }: PreparedJournal,
): Promise<IngestRunResult> {
  const input: IngestRunInput = { kind, directory: workspace.directory('ingest') }
  copyFileSync(path, openDataDirectory(input.directory).journal)
  const result = await runBenchProcess<IngestRunResult>({ script: 'ingest/run.ts', input, msMax: runMsMax })
  workspace.discard(input.directory)
  if (result.records !== events) throw new Error(`${kind} saw ${result.records} of ${events} records`)
  return result
}

function figures(journal: PreparedJournal, ceilings: IngestRunResult[], ours: IngestRunResult[]): Figure[] {
  const rate = ({ records, seconds }: IngestRunResult) => records / seconds
  const seconds = summarize(ours.map(result => result.seconds))
  const peakMb = summarize(ours.map(result => result.peakBytes / 1e6))
  const ratio = ratioOfPairs(ours.map(rate), ceilings.map(rate))
  return [
    figureOf('ceiling', 'events/s', summarize(ceilings.map(rate))),
    figureOf('projector', 'events/s', summarize(ours.map(rate))),
    figureOf('projector / ceiling', '', ratio, { atLeast: 0.65 }),
    // The target time is for the real table only.
    figureOf('whole history', 's', seconds, journal.isWholeTable ? { atMost: 25 } : undefined),
    figureOf('main thread CPU an event', 'us', summarize(ours.map(cpuMicros))),
    figureOf('ceiling, main thread CPU an event', 'us', summarize(ceilings.map(cpuMicros))),
    {
      ...figureOf('peak memory, both processes', 'MB', peakMb),
      value: peakMb.max,
      target: { atMost: 1_500 },
    },
  ]
}

function cpuMicros({ cpuSeconds, records }: IngestRunResult): number {
  return (cpuSeconds * 1e6) / records
}
