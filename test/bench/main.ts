/**
 * `npm run bench [-- NAME ...] [--json] [--against FILE]`: figures, compared with the design's targets. NAME is ingest, api, lists,
 * rebuild, growth, questions or kafka.
 *
 * Without a name, the short embedded benches run. `growth` and `questions` take some minutes, and `rebuild` about twenty, or less with a
 * smaller platform (`--campaigns` and `--pledges`). `kafka` needs Java and Maven, and takes minutes.
 *
 * `--against FILE` compares: FILE is the `--json` output of an earlier run. Without a name, the benches of FILE run, with its
 * sizes.
 *
 * Speed is a figure and not a test: the exit code is 0 unless a bench could not be run.
 */
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { messageOf } from '../../services/runtime/message-of.ts'
import { type BenchRun, compareRuns, comparisonText, warningsOf } from './against.ts'
import { benchApi } from './api/api.ts'
import { killBenchProcesses } from './bench-process.ts'
import { benchGrowth } from './growth/growth.ts'
import { benchIngest } from './ingest/ingest.ts'
import { benchKafkaFreshness } from './kafka/freshness.ts'
import { benchLists } from './lists/lists.ts'
import { describeMachine, machineText } from './machine.ts'
import type { PlatformSize } from './platform/platform.ts'
import { benchQuestions, questionsSize } from './questions/questions.ts'
import { benchRebuild, rebuildSize } from './rebuild/rebuild.ts'
import { type BenchReport, reportText } from './report.ts'
import { createWorkspace, type Workspace } from './workspace.ts'

type Bench = (workspace: Workspace) => Promise<BenchReport>

const embedded: Readonly<Record<string, Bench>> = {
  ingest: benchIngest,
  api: benchApi,
  lists: benchLists,
}
const long: Readonly<Record<string, Bench>> = {
  rebuild: workspace => benchRebuild(workspace, platformSize()),
  growth: benchGrowth,
  questions: workspace => benchQuestions(workspace, platformSize(questionsSize)),
}
const benches = { ...embedded, ...long, kafka: benchKafkaFreshness }

const usage = 'npm run bench -- [NAME ...] [--json] [--against FILE] [--campaigns N] [--pledges N]'
const { values, positionals } = readArguments()
const earlier = readRunOf(values.against)
const names =
  positionals.length > 0 ? positionals : (earlier?.benches.map(({ bench }) => bench) ?? Object.keys(embedded))
const unknown = names.filter(name => !Object.hasOwn(benches, name))
if (unknown.length > 0) {
  exitWrong(`there is no bench ${unknown.join(', ')}: ${usage}; NAME is ${Object.keys(benches).join(', ')}`)
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
  const machine = describeMachine()
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
  const run: BenchRun = { machine, size: platformSize(), benches: reports }
  if (values.json) {
    const comparison = earlier && { warnings: warningsOf(earlier, run), figures: compareRuns(earlier, run) }
    const all = { ...run, failures, comparison }
    process.stdout.write(`${JSON.stringify(all)}\n`)
  } else if (earlier) {
    process.stdout.write(comparisonText(earlier, run))
  }
  return failures.length > 0 ? 1 : 0
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        campaigns: { type: 'string' },
        pledges: { type: 'string' },
        against: { type: 'string' },
      },
    })
  } catch (error) {
    return exitWrong(`${messageOf(error)}\n${usage}`)
  }
}

/** The run of a `--json` file. Ends the process if the file cannot be read, before anything is measured. */
function readRunOf(file: string | undefined): BenchRun | undefined {
  if (file === undefined) return undefined
  try {
    const run: BenchRun = JSON.parse(readFileSync(file, 'utf8'))
    if (Array.isArray(run.benches)) return run
    return exitWrong(`${file} is not the --json output of npm run bench`)
  } catch (error) {
    return exitWrong(`${file} cannot be read: ${messageOf(error)}`)
  }
}

function exitWrong(reason: string): never {
  process.stderr.write(`${reason}\n`)
  process.exit(2)
}

/** Throws if the text is not a number of campaigns or pledges. */
function platformSize(usual: PlatformSize = rebuildSize): PlatformSize {
  const size = { ...usual, ...earlier?.size }
  const [campaigns, pledges] = [
    Number(values.campaigns ?? size.campaigns),
    Number(values.pledges ?? size.pledges),
  ]
  for (const count of [campaigns, pledges]) {
    if (!Number.isInteger(count) || count < 1)
      throw new Error(`--campaigns and --pledges must be whole numbers`)
  }
  return { campaigns, pledges }
}
