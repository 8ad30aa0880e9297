/** What all commands share: how they are called, how they print and how they fail. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { isDistributed } from '../distributed/settings.ts'
import { type Config, ConfigError } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { type Help, helpFor, helpText, usageText } from './help.ts'
import { printable, printableLines } from './printable.ts'

export interface Io {
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
}

/** A command by its name. Its code is loaded when it is called. */
export interface CommandEntry {
  /** One line for the list of commands. */
  summary: string
  load: () => Promise<Command>
}

export interface Command {
  help: Help
  /** Resolves with the exit code: 0 done, 1 failed, 2 called wrongly. */
  run(args: string[], io: Io): Promise<number>
}

/** The command was called wrongly. The message and the usage are printed, and the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

export const defaultDataDirectory = '.pledgeview'

export const dataDirOption = {
  '--data-dir D': `the data directory of the embedded service (default ${defaultDataDirectory})`,
}
export const jsonOption = { '--json': 'print one JSON object on stdout' }

/** The options that most commands have. */
export const commonOptions = { ...dataDirOption, ...jsonOption }

/**
 * The data directory that a command works on, or `undefined` if it works on Kafka and ClickHouse: that is so if Kafka is
 * configured and `--data-dir` is not given. All commands decide here.
 */
export function embeddedDirectory(dataDir: string | undefined, config: Config): string | undefined {
  return dataDir === undefined && isDistributed(config) ? undefined : (dataDir ?? defaultDataDirectory)
}

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
    io.stdout.write(helpText(helpFor(command.help, args)))
    return 0
  }
  try {
    return await command.run(args, io)
  } catch (error) {
    return reportFailure(error, helpFor(command.help, args), args.includes('--json'), io)
  }
}

type Options = NonNullable<Help['options']>

/** The values of options by their names. Of `--limit N` it is a text, if it was given; of `--open`, whether it was given. */
export type Values<Given extends Options> = {
  [Option in keyof Given as NameOf<Option>]: Option extends `${string} ${string}`
    ? string | undefined
    : boolean
}
type NameOf<Option> = Option extends `--${infer Name} ${string}`
  ? Name
  : Option extends `--${infer Name}`
    ? Name
    : never

/** Reads the options of a help, strictly. Throws `UsageError` for an unknown option or a missing value. */
export function readArguments<Given extends Options>(
  args: string[],
  given: Given,
  { allowPositionals = false } = {},
): { values: Values<Given>; positionals: string[] } {
  const options: ParseArgsOptionsConfig = {}
  for (const option of Object.keys(given)) {
    const [, name, value] = /^--(\S+)( .+)?$/.exec(option) ?? []
    if (name !== undefined) options[name] = value ? { type: 'string' } : { type: 'boolean', default: false }
  }
  try {
    const { values, positionals } = parseArgs({ args, allowPositionals, options })
    return { values: values as Values<Given>, positionals }
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

/** The error of a call without a subcommand, with an unknown one, or with an option before it. */
export function noSubcommand(command: string, { subcommands = {} }: Help, verb = ''): UsageError {
  const names = Object.keys(subcommands).join(', ')
  return new UsageError(
    verb.startsWith('-')
      ? `the subcommand comes before ${verb}: ${command} ${names}`
      : `the ${command} commands are ${names}`,
  )
}

/** A whole number within bounds, from an option's text. Throws `UsageError` that names the option. */
export function wholeNumber(
  option: string,
  text: string,
  { min, max }: { min: number; max: number },
): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageError(`--${option} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`)
}

/** Prints one JSON object on one line, as `--json` promises. */
export function printJson(io: Io, value: object): void {
  io.stdout.write(`${JSON.stringify(value)}\n`)
}

/** Prints texts beside their names. One without a name goes on with what stands above. */
export function printLines(
  io: Pick<Io, 'stdout'>,
  nameWidth: number,
  lines: readonly (readonly string[])[],
): void {
  for (const [name = '', text = ''] of lines) io.stdout.write(`${name.padEnd(nameWidth)}${printable(text)}\n`)
}

/**
 * Runs the work with a signal that aborts at the first interrupt of the process. A second interrupt ends the process
 * at once. For work that ends by itself; the work decides what an interrupt means.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  using listeners = new DisposableStack()
  for (const name of ['SIGINT', 'SIGTERM']) {
    process.on(name, onSignal)
    listeners.defer(() => process.off(name, onSignal))
  }
  return await work(stop.signal)

  function onSignal(): void {
    listeners.dispose()
    stop.abort(new Error('it was interrupted'))
  }
}

function reportFailure(error: unknown, help: Help, asJson: boolean, io: Io): number {
  const isUsage = error instanceof UsageError
  if (asJson) printJson(io, { error: { message: messageOf(error) } })
  io.stderr.write(`pledgeview: ${printableLines(messageOf(error))}\n`)
  if (isUsage) io.stderr.write(`\n${usageText(help)}`)
  return isUsage || error instanceof ConfigError ? 2 : 1
}

function helpOf(commands: Readonly<Record<string, CommandEntry>>): string {
  const width = Math.max(...Object.keys(commands).map(name => name.length))
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`)
  return `usage: pledgeview COMMAND [OPTIONS]\n\n${lines.join('\n')}\n\npledgeview COMMAND --help describes a command.\n`
}
