/** The text of `--help`: each command and subcommand describes itself alone. Pure. */

/** The help of one command or subcommand. */
export interface Help {
  /** The call, without the program's name: `keys revoke KEY [--json]`. */
  call: string
  /** What it does: one sentence, or a few. */
  does: string
  /** What each option or argument means, by how it is written: `--limit N`. */
  options?: Readonly<Record<string, string>>
  /** Calls to copy, without the program's name. */
  examples?: readonly string[]
  /** What a call costs: time, load, disk, and what it changes. */
  cost?: string
  /** The help of each subcommand, by its name. */
  subcommands?: Readonly<Record<string, Help>>
}

const program = 'pledgeview'
const columns = 100

/** The help that a call asks for: of the subcommand that its first word names, or of the command itself. */
export function helpFor(help: Help, args: readonly string[]): Help {
  const name = args.find(arg => !arg.startsWith('-'))
  const { subcommands = {} } = help
  return name !== undefined && Object.hasOwn(subcommands, name) ? (subcommands[name] ?? help) : help
}

/** The whole help of a command or subcommand. */
export function helpText({ call, does, options = {}, examples = [], cost, subcommands = {} }: Help): string {
  const parts = [`usage: ${program} ${call}`, wrapped(does, '')]
  const calls = Object.fromEntries(
    Object.entries(subcommands).map(([name, help]) => [name, firstSentence(help.does)]),
  )
  if (Object.keys(calls).length > 0) {
    parts.push(`${table(calls)}\n\n${program} ${call.split(' ')[0]} SUBCOMMAND --help describes one of them.`)
  }
  if (Object.keys(options).length > 0) parts.push(`Options:\n${table(options)}`)
  if (examples.length > 0)
    parts.push(['Example:', ...examples.map(line => `  ${program} ${line}`)].join('\n'))
  if (cost !== undefined) parts.push(`Cost: ${wrapped(cost, '')}`)
  return `${parts.join('\n\n')}\n`
}

/** What a wrong call is told: how the right one looks, and where to read more. */
export function usageText({ call, examples, subcommands }: Help): string {
  const words = call.split(' ')
  const name = subcommands ? words[0] : words.filter(word => /^[a-z]+$/.test(word)).join(' ')
  // A command that has subcommands is called alone only if it has an example of that.
  const own = subcommands && !examples ? [] : [call]
  const calls = [...own, ...Object.values(subcommands ?? {}).map(help => help.call)]
  const lines = calls.map((text, index) => `${index === 0 ? 'usage:' : '      '} ${program} ${text}`)
  return `${lines.join('\n')}\n\n${program} ${name} --help describes it.\n`
}

/** Two columns: names, and their texts wrapped beside them. */
function table(rows: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(rows).map(name => name.length))
  const indent = ' '.repeat(width + 4)
  return Object.entries(rows)
    .map(([name, text]) => `  ${name.padEnd(width)}  ${wrapped(text, indent)}`)
    .join('\n')
}

/** The text in lines of at most `columns`; `indent` stands before each line but the first. A word is never cut. */
function wrapped(text: string, indent: string): string {
  const line = new RegExp(`\\S.{0,${columns - indent.length - 1}}(?= |$)|\\S+`, 'g')
  return [...text.replace(/\s+/g, ' ').matchAll(line)].join(`\n${indent}`)
}

function firstSentence(text: string): string {
  return /^.*?[.](?=\s|$)/s.exec(text)?.[0] ?? text
}
