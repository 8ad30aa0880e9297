import type { RebuildRequest, RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport, Rebuilds } from '../../generations/rebuilds.ts'
import { createPaintedLine } from '../../runtime/progress.ts'
import { type Command, type Io, interruptible, printJson, readArguments, UsageError } from '../command.ts'
import { helpFor } from '../help.ts'
import { onModel } from '../on-model.ts'
import { printableLines } from '../printable.ts'
import { rebuildHelp, rebuildOptions } from './help.ts'
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

export const rebuildCommand: Command = {
  help: rebuildHelp,

  async run(args, io) {
    const { values, positionals } = readArguments(args, rebuildOptions, { allowPositionals: true })
    const [verb, ...rest] = positionals
    if (rest.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(rest[0])}`)
    if (verb !== undefined && !verbs.includes(verb))
      throw new UsageError(`${verb} is not a rebuild command: they are status, rollback and drop`)
    const taken = Object.keys(helpFor(rebuildHelp, positionals).options ?? {})
    for (const [name, value] of Object.entries(values)) {
      const isTaken = taken.some(option => option.split(' ')[0] === `--${name}`)
      if (value && !isTaken) throw new UsageError(`rebuild ${verb} does not take --${name}`)
    }
    const request: RebuildRequest = {
      kind: verb === 'rollback' ? 'rollback' : 'rebuild',
      isDry: values['dry-run'],
      acceptsLoss: values['accept-loss'],
      ignoresDisk: values['ignore-disk'],
    }
    return onModel(values['data-dir'], async model => {
      const rebuilds = await model.rebuilds()
      switch (verb) {
        case 'status': {
          const latest = await rebuilds.report()
          if (values.json) printJson(io, statusJson(latest))
          else io.stdout.write(statusText(latest))
          return 0
        }
        case 'drop':
          return printEnd(await rebuilds.drop(), ['dropped'], values.json, io)
        default:
          return carryThrough(rebuilds, request, values.json, io)
      }
    })
  },
}

const verbs = Object.keys(rebuildHelp.subcommands ?? {})
const paintMs = 250
const reportMs = 1_000

/**
 * Runs a rebuild, and reports its latest state again and again, also while nothing new is known: painted on a terminal, an object a
 * second for a program, and each phase as it begins in a log.
 */
async function carryThrough(
  rebuilds: Rebuilds,
  request: RebuildRequest,
  asJson: boolean,
  io: Io,
): Promise<number> {
  const line = createPaintedLine(io.stderr)
  let latest: RebuildState | undefined
  const report = (state: RebuildState) =>
    asJson ? printJson(io, progressJson(state)) : line.paint(() => progressLine(state))
  const reporting = setInterval(() => latest && report(latest), asJson ? reportMs : paintMs)
  const onProgress = (state: RebuildState) => {
    if (!asJson && state.phase !== latest?.phase) {
      line.wipe()
      io.stderr.write(`${state.phase}\n`)
    }
    latest = state
  }
  return interruptible(async signal => {
    const stopping = 'Stopping. A second interrupt ends the command at once, which does no harm.\n'
    signal.addEventListener('abort', () => io.stderr.write(stopping))
    const running = rebuilds.run(request, { onProgress, signal }).finally(() => {
      clearInterval(reporting)
      line.wipe()
    })
    return printEnd(await running, ['rebuilt', 'compared'], asJson, io)
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
