import type { RebuildRequest, RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport, Rebuilds } from '../../generations/rebuilds.ts'
import { createPaintedLine } from '../../runtime/progress.ts'
import { type Command, type Io, interruptible, printJson, readArguments, UsageError } from '../command.ts'
import { onModel } from '../on-model.ts'
import { printableLines } from '../printable.ts'
import { rebuildHelp } from './help.ts'
import {
  type Outcome,
  outcomeOf,
  progressJson,
  progressLine,
  resultJson,
  resultText,
  statusJson,
  statusText,
  unfinishedText,
} from './view.ts'

const options = {
  'dry-run': { type: 'boolean', default: false },
  'accept-loss': { type: 'boolean', default: false },
  'ignore-disk': { type: 'boolean', default: false },
  'data-dir': { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

type Values = ReturnType<typeof readArguments<{ args: string[]; options: typeof options }>>['values']
type Option = keyof Values

const always: readonly Option[] = ['data-dir', 'json']
// What each subcommand accepts in addition to these.
const optionsOf = {
  begin: ['dry-run', 'accept-loss', 'ignore-disk'],
  status: [],
  rollback: ['accept-loss'],
  drop: [],
} as const satisfies Record<string, readonly Option[]>

export const rebuildCommand: Command = {
  help: rebuildHelp,

  async run(args, io) {
    const { values, positionals } = readArguments({ args, allowPositionals: true, options })
    const verb = verbOf(positionals)
    for (const name of Object.keys(values) as Option[]) {
      const isTaken = [...always, ...optionsOf[verb]].includes(name)
      if (values[name] && !isTaken) throw new UsageError(`rebuild ${verb} does not take --${name}`)
    }
    const request = requestOf(verb, values)
    return onModel(values['data-dir'], async model => {
      const rebuilds = await model.rebuilds()
      switch (verb) {
        case 'begin':
        case 'rollback':
          return carryThrough(rebuilds, request, values.json, io)
        case 'status': {
          const latest = await rebuilds.report()
          if (values.json) printJson(io, statusJson(latest))
          else io.stdout.write(statusText(latest))
          return 0
        }
        case 'drop':
          return printEnd(await rebuilds.drop(), ['dropped'], values.json, io)
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
  if (name === 'status' || name === 'rollback' || name === 'drop') return name
  throw new UsageError(`${name} is not a rebuild command: they are status, rollback and drop`)
}

function requestOf(verb: Verb, values: Values): RebuildRequest {
  return {
    kind: verb === 'rollback' ? 'rollback' : 'rebuild',
    isDry: values['dry-run'],
    acceptsLoss: values['accept-loss'],
    ignoresDisk: values['ignore-disk'],
  }
}

async function carryThrough(
  rebuilds: Rebuilds,
  request: RebuildRequest,
  asJson: boolean,
  io: Io,
): Promise<number> {
  return interruptible(async signal => {
    const stop = new AbortController()
    signal.addEventListener('abort', () => {
      io.stderr.write('Stopping. A second interrupt ends the command at once, which does no harm.\n')
      stop.abort(new Error('it was interrupted'))
    })
    const last = await reported(io, asJson, onProgress =>
      rebuilds.run(request, { onProgress, signal: stop.signal }),
    )
    return printEnd(last, ['rebuilt', 'compared'], asJson, io)
  })
}

/** Prints the result. Returns the exit code: 0 if the rebuild ended as requested. */
function printEnd(report: RebuildReport, meant: readonly Outcome[], asJson: boolean, io: Io): number {
  const outcome = outcomeOf(report)
  if (asJson) printJson(io, resultJson(report))
  else io.stdout.write(resultText(report))
  if (outcome !== 'stopped') return meant.includes(outcome) ? 0 : 1
  const { failure } = report.detail
  const reason = failure === null ? 'its process has ended' : printableLines(failure)
  io.stderr.write(`pledgeview: the rebuild is not finished: ${reason}\n`)
  io.stderr.write(unfinishedText(report))
  return 1
}

/* Reports a rebuild while it runs: painted on a terminal, an object a second for a program, and each phase as it begins in a log. */

const paintMs = 250
const reportMs = 1_000

/** Runs a rebuild, and reports its latest state again and again, also while nothing new is known. */
async function reported(
  io: Io,
  asJson: boolean,
  run: (onProgress: (state: RebuildState) => void) => Promise<RebuildReport>,
): Promise<RebuildReport> {
  const line = createPaintedLine(io.stderr)
  let latest: RebuildState | undefined
  const report = (state: RebuildState) =>
    asJson ? printJson(io, progressJson(state)) : line.paint(() => progressLine(state))
  const reporting = setInterval(() => latest && report(latest), asJson ? reportMs : paintMs)
  try {
    return await run(state => {
      if (!asJson && state.phase !== latest?.phase) {
        line.wipe()
        io.stderr.write(`${state.phase}\n`)
      }
      latest = state
    })
  } finally {
    clearInterval(reporting)
    line.wipe()
  }
}
