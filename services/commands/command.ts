/** What all commands share: how they are called, how they print, how they fail. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { ConfigError } from '../shared/config.ts'

export interface Io {
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
}

/** A command in the list of them, loaded when it is called. */
export interface CommandEntry {
  /** One line. */
  summary: string
  load: () => Promise<Command>
}

export interface Command {
  /** The whole help, first line `usage: ...`. */
  usage: string
  /** Resolves with the exit code: 0 done, 1 failed, 2 called wrongly. */
  run(args: string[], io: Io): Promise<number>
}

/** The command was called wrongly: the message and the usage are printed, and the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export const defaultDataDirectory = '.pledgeview'

/** Picks the command and runs it. A failure is one line on stderr, or with `--json` one object on stdout. */
export async function runCommand(
  commands: Readonly<Record<string, CommandEntry>>,
  [name, ...args]: string[],
  io: Io,
): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    io.stdout.write(helpOf(commands))
    return name === undefined ? 2 : 0
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!entry) {
    io.stderr.write(`pledgeview: there is no command ${JSON.stringify(name)}\n\n${helpOf(commands)}`)
    return 2
  }
  const command = await entry.load()
  if (args.includes('--help') || args.includes('-h')) {
    io.stdout.write(`${command.usage}\n`)
    return 0
  }
  try {
    return await command.run(args, io)
  } catch (error) {
    return reportFailure(error, command, args.includes('--json'), io)
  }
}

/** `parseArgs` with strictness, its faults as `UsageError`. */
export function readArguments<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** A whole number within bounds, from an option's text. Throws `UsageError`, naming the option. */
export function wholeNumber(
  option: string,
  text: string,
  { min, max }: { min: number; max: number },
): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageError(`--${option} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`)
}

/** One JSON object, as `--json` promises. */
export function printJson(io: Io, value: object): void {
  io.stdout.write(`${JSON.stringify(value)}\n`)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function reportFailure(error: unknown, command: Command, asJson: boolean, io: Io): number {
  const isUsage = error instanceof UsageError
  if (asJson) printJson(io, { error: { message: messageOf(error) } })
  io.stderr.write(`pledgeview: ${messageOf(error)}\n`)
  if (isUsage) io.stderr.write(`\n${command.usage}\n`)
  return isUsage || error instanceof ConfigError ? 2 : 1
}

function helpOf(commands: Readonly<Record<string, CommandEntry>>): string {
  const width = Math.max(...Object.keys(commands).map(name => name.length))
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `usage: pledgeview COMMAND [OPTIONS]\n\n${lines.join('\n')}\n\npledgeview COMMAND --help tells more.\n`
}
