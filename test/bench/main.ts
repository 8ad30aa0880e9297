/**
 * `npm run bench [-- NAME ...] [--json]`: figures, compared with the design's targets. NAME is ingest, api, cold, lists, keys,
 * analysts, questions, rebuild or kafka.
 *
 * Without a name, the short embedded benches run. `questions` takes some minutes and `rebuild` about twenty, or less with a
 * smaller platform (`--campaigns` and `--pledges`). `kafka` stands for three benches (kafka-ingest, kafka-freshness,
 * kafka-memory), which need Java and Maven and take minutes.
 *
 * Speed is a figure and not a test: the exit code is 0 unless a bench could not be run.
 */
import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { benchAnalysts } from './analysts.ts'
import { benchApi } from './api.ts'
import { killBenchProcesses, runBenchProcess } from './bench-process.ts'
import { benchCold } from './cold.ts'
import { benchIngest } from './ingest.ts'
import { benchKafkaFreshness } from './kafka/freshness.ts'
import { benchKafkaIngest } from './kafka/ingest.ts'
import { benchKafkaMemory } from './kafka/memory.ts'
import { benchKeys } from './keys.ts'
import { benchLists } from './lists.ts'
import { describeMachine, machineText } from './machine.ts'
import type { PlatformSize } from './platform.ts'
import { benchQuestions } from './questions.ts'
import { benchRebuild, rebuildSize } from './rebuild.ts'
import { type BenchReport, reportObject, reportText } from './report.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

type Bench = (workspace: Workspace) => Promise<BenchReport>

const embedded: Readonly<Record<string, Bench>> = {
  ingest: benchIngest,
  api: benchApi,
  cold: benchCold,
  lists: benchLists,
  keys: benchKeys,
  analysts: benchAnalysts,
}
const long: Readonly<Record<string, Bench>> = {
  questions: workspace => benchQuestions(workspace, platformSize()),
  rebuild: workspace => benchRebuild(workspace, platformSize()),
}
const kafka: Readonly<Record<string, Bench>> = {
  'kafka-ingest': benchKafkaIngest,
  'kafka-freshness': benchKafkaFreshness,
  'kafka-memory': benchKafkaMemory,
}
const benches = { ...embedded, ...long, ...kafka }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    campaigns: { type: 'string', default: String(rebuildSize.campaigns) },
    pledges: { type: 'string', default: String(rebuildSize.pledges) },
  },
})
const names = positionals.length === 0 ? Object.keys(embedded) : positionals.flatMap(benchNames)
const unknown = names.filter(name => !Object.hasOwn(benches, name))
if (unknown.length > 0) {
  process.stderr.write(
    `there is no bench ${unknown.join(', ')}; there are: ${[...Object.keys(benches), 'kafka'].join(', ')}\n`,
  )
  process.exit(2)
}

const workspace = createWorkspace()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await killBenchProcesses()
    // This is the last exit handler: every process that could still write there has been killed by then.
    process.once('exit', () => workspace.remove())
    process.exit(128 + constants.signals[signal])
  })
}
try {
  process.exitCode = await run()
} finally {
  workspace.remove()
}

async function run(): Promise<number> {
  const { version } = await runBenchProcess<{ version: string }>({
    script: 'clickhouse-version.ts',
    input: { directory: workspace.directory('version') },
    msMax: 30_000,
  })
  const machine = describeMachine(version)
  if (!values.json) process.stdout.write(`${machineText(machine)}\n`)
  const reports: BenchReport[] = []
  const failures: { bench: string; message: string }[] = []
  for (const [name, bench] of Object.entries(benches)) {
    if (!names.includes(name)) continue
    try {
      const report = await bench(workspace)
      reports.push(report)
      if (!values.json) process.stdout.write(`${reportText(report)}\n`)
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      failures.push({ bench: name, message })
      process.stderr.write(`${name} could not be run: ${message}\n`)
    }
  }
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ machine, benches: reports.map(reportObject), failures })}\n`)
  }
  return failures.length > 0 ? 1 : 0
}

/** Throws if the text is not a number of campaigns or pledges. */
function platformSize(): PlatformSize {
  const [campaigns, pledges] = [Number(values.campaigns), Number(values.pledges)]
  for (const count of [campaigns, pledges]) {
    if (!Number.isInteger(count) || count < 1)
      throw new Error(`--campaigns and --pledges must be whole numbers`)
  }
  return { campaigns, pledges }
}

function benchNames(name: string): string[] {
  return name === 'kafka' ? Object.keys(kafka) : [name]
}
