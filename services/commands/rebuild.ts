import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { withModel } from '../embedded/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import type { RebuildDesk, RebuildReport } from '../rebuild/desk.ts'
import { withDistributedRebuilds } from '../rebuild/distributed.ts'
import type { RebuildRequest } from '../rebuild/rebuild-log.ts'
import { readConfig } from '../shared/config.ts'
import { isDistributed } from '../shared/distributed.ts'
import { createLogger } from '../shared/logger.ts'
import {
  type Command,
  defaultDataDirectory,
  type Io,
  printJson,
  readArguments,
  UsageError,
} from './command.ts'
import { interruptible } from './interruptible.ts'
import { followRebuild, jsonTeller, lineTeller, terminalTeller } from './rebuild-follow.ts'
import { resultJson, statusJson } from './rebuild-json.ts'
import { type Outcome, outcomeOf, resultText, statusText, unfinishedText } from './rebuild-view.ts'

const options = {
  'from-time': { type: 'string' },
  'from-file': { type: 'string', multiple: true },
  'dry-run': { type: 'boolean', default: false },
  'accept-loss': { type: 'boolean', default: false },
  'ignore-disk': { type: 'boolean', default: false },
  'data-dir': { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

type Values = ReturnType<typeof readArguments<{ args: string[]; options: typeof options }>>['values']
type Option = keyof Values

const always: readonly Option[] = ['data-dir', 'json']
// What each verb takes beside these.
const optionsOf = {
  begin: ['from-time', 'from-file', 'dry-run', 'accept-loss', 'ignore-disk'],
  status: [],
  abort: [],
  back: ['accept-loss'],
  drop: [],
} as const satisfies Record<string, readonly Option[]>

export const rebuildCommand: Command = {
  usage: `usage: pledgeview rebuild [--from-time TIME] [--from-file FILE]... [--dry-run] [--accept-loss] [--ignore-disk]
       pledgeview rebuild status
       pledgeview rebuild abort
       pledgeview rebuild back [--accept-loss]
       pledgeview rebuild drop

Replays the whole event log into new tables beside the live ones, verifies them, puts them in their place, and reads on to
where the live ones were. The API serves and the projector projects all the time; campaigns that come out the same keep their
updated_at. The same command again goes on with a rebuild that was killed or stopped. The tables before are kept.

  status           how far it is, whether a process is at it, and how the last one ended
  abort            give up the one that is not finished; the live model stays as it is
  back             return to the tables before, brought up to date; back again goes forth
  drop             drop the tables before, and free their disk

  --from-time TIME  read what was appended to the log at TIME (ISO 8601, with its zone) or later, not all of it
  --from-file FILE  read these archived events first, NDJSON or Avro container; several are read in their order
  --dry-run         build and compare, say what would change, and drop it again
  --accept-loss     put the new tables in place although the live ones know what the history does not tell
  --ignore-disk     begin although the disk seems too small
  --data-dir D      the embedded service's data directory (default ${defaultDataDirectory}); where a service runs on it, the
                    rebuild runs in the service, and goes on when this command is interrupted
  --json            one JSON object a line on stdout: progress once a second, and a last one of the type result

Distributed where PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given: then it runs in this process, in a consumer
group of its own. Exit code: 0 done, 1 failed, refused or interrupted, 2 called wrongly.`,

  async run(args, io) {
    const { values, positionals } = readArguments({ args, allowPositionals: true, options })
    const verb = verbOf(positionals)
    for (const name of Object.keys(values) as Option[]) {
      const isTaken = [...always, ...optionsOf[verb]].includes(name)
      if (values[name] && !isTaken) throw new UsageError(`rebuild ${verb} does not take --${name}`)
    }
    const request = requestOf(verb, values)
    return withDesk(values['data-dir'], async desk => {
      switch (verb) {
        case 'begin':
        case 'back':
          return carryThrough(desk, request, values.json, io)
        case 'status': {
          const latest = await desk.report()
          if (values.json) printJson(io, statusJson(latest))
          else io.stdout.write(statusText(latest))
          return 0
        }
        case 'abort':
          return printEnd(await desk.abort(), ['aborted'], values.json, io)
        case 'drop':
          return printEnd(await desk.drop(), ['dropped'], values.json, io)
        default:
          return verb satisfies never
      }
    })
  },
}

type Verb = keyof typeof optionsOf

function verbOf([name, ...rest]: string[]): Verb {
  if (rest.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(rest[0])}`)
  if (name === undefined) return 'begin'
  if (name === 'status' || name === 'abort' || name === 'back' || name === 'drop') return name
  throw new UsageError(`the rebuild commands are rebuild alone, status, abort, back and drop, not ${name}`)
}

function requestOf(verb: Verb, values: Values): RebuildRequest {
  const fromTime = values['from-time']
  return {
    kind: verb === 'back' ? 'back' : 'rebuild',
    // Whoever reads them may stand in another directory.
    files: (values['from-file'] ?? []).map(existingFile),
    fromTime: fromTime === undefined ? null : timeOf(fromTime),
    isDry: values['dry-run'],
    acceptsLoss: values['accept-loss'],
    ignoresDisk: values['ignore-disk'],
  }
}

function existingFile(name: string): string {
  const path = resolve(name)
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) throw new UsageError(`${name} is no file`)
  return path
}

const timePattern = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/

function timeOf(text: string): number {
  const time = timePattern.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return time
  throw new UsageError(`--from-time takes a time as 2026-03-01T09:00:00Z, not ${JSON.stringify(text)}`)
}

async function withDesk<T>(root: string | undefined, work: (desk: RebuildDesk) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  if (root === undefined && isDistributed(config)) {
    return withDistributedRebuilds(config, { logger: createLogger('warn') }, work)
  }
  const directory = openExistingDataDirectory(root ?? defaultDataDirectory)
  return withModel(directory, config, { isCaughtUp: false }, ({ rebuilds }) => work(rebuilds))
}

const interrupted = 'it was interrupted'

async function carryThrough(
  desk: RebuildDesk,
  request: RebuildRequest,
  asJson: boolean,
  io: Io,
): Promise<number> {
  const isTerminal = 'isTTY' in io.stderr && io.stderr.isTTY === true
  const teller = asJson ? jsonTeller(io) : isTerminal ? terminalTeller(io) : lineTeller(io)
  return interruptible(async signal => {
    const first = await desk.start(request)
    const last = await followRebuild(desk, first, teller, signal)
    if (!last.isAlive) return printEnd(last, ['rebuilt', 'compared'], asJson, io)
    if (!desk.close) {
      io.stderr.write('The service goes on with the rebuild. The same command follows it again.\n')
      return 1
    }
    io.stderr.write('Stopping. A second interrupt ends it at once, which does no harm either.\n')
    await desk.close(interrupted)
    return printEnd((await desk.report()) ?? last, ['rebuilt', 'compared'], asJson, io)
  })
}

/** Resolves with the exit code: 0 where it ended as it was meant to. */
function printEnd(report: RebuildReport, meant: readonly Outcome[], asJson: boolean, io: Io): number {
  const outcome = outcomeOf(report)
  if (asJson) printJson(io, resultJson(report))
  else io.stdout.write(resultText(report))
  if (outcome !== 'stopped') return meant.includes(outcome) ? 0 : 1
  const { failure } = report.state.detail
  io.stderr.write(`pledgeview: the rebuild is not finished: ${failure ?? 'its process has ended'}\n`)
  io.stderr.write(unfinishedText(report))
  return 1
}
