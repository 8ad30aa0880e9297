/** `--help`: each command and subcommand describes itself alone, with an example and its cost. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { type Command, runCommand } from '../../../services/commands/command.ts'
import { eventsCommand } from '../../../services/commands/events/events.ts'
import { explainCommand } from '../../../services/commands/explain/explain.ts'
import type { Help } from '../../../services/commands/help.ts'
import { keysCommand } from '../../../services/commands/keys.ts'
import { migrateCommand } from '../../../services/commands/migrate.ts'
import { purgeCommand } from '../../../services/commands/purge.ts'
import { rebuildCommand } from '../../../services/commands/rebuild/rebuild.ts'
import { rejectsCommand } from '../../../services/commands/rejects/rejects.ts'
import { restoredCommand } from '../../../services/commands/restored.ts'
import { portalCommand, projectorCommand, queryCommand } from '../../../services/commands/services.ts'
import { startCommand } from '../../../services/commands/start.ts'
import { statusCommand } from '../../../services/commands/status/status.ts'

const commands: Readonly<Record<string, Command>> = {
  start: startCommand,
  projector: projectorCommand,
  query: queryCommand,
  portal: portalCommand,
  events: eventsCommand,
  keys: keysCommand,
  status: statusCommand,
  explain: explainCommand,
  rejects: rejectsCommand,
  rebuild: rebuildCommand,
  restored: restoredCommand,
  purge: purgeCommand,
  migrate: migrateCommand,
}

interface Call {
  words: string[]
  help: Help
}

const calls: Call[] = Object.entries(commands).flatMap(([name, { help }]) => [
  { words: [name], help },
  ...Object.entries(help.subcommands ?? {}).map(([verb, own]) => ({ words: [name, verb], help: own })),
])

async function run(args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const entries = Object.entries(commands).map(([name, command]) => [
    name,
    { summary: name, load: async () => command },
  ])
  const code = await runCommand(Object.fromEntries(entries), args, io)
  io.stdout.end()
  io.stderr.end()
  return { code, stdout: await text(io.stdout), stderr: await text(io.stderr) }
}

describe.each(calls)('pledgeview $words', ({ words, help }) => {
  test('describes itself on stdout, and fits a terminal', async () => {
    const { code, stdout, stderr } = await run([...words, '--help'])
    expect(code).toBe(0)
    expect(stderr).toBe('')
    expect(stdout).toContain(`usage: pledgeview ${help.call}\n`)
    const [, ...lines] = stdout.split('\n')
    expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(110)
  })

  test('has its own example and a cost, unless it only has subcommands', () => {
    if (help.subcommands && !help.examples) return
    expect(help.examples?.length).toBeGreaterThan(0)
    for (const example of help.examples ?? []) {
      expect(example.split(' ').slice(0, words.length)).toEqual(words)
    }
    expect(help.cost).toBeTruthy()
  })

  test('names every option that its call shows', () => {
    const shown = help.call.match(/--[a-z-]+/g) ?? []
    const described = Object.keys(help.options ?? {}).join(' ')
    for (const option of shown) expect(described).toContain(option)
  })
})

test('the help of a subcommand holds nothing of its siblings', async () => {
  const { stdout } = await run(['rejects', 'show', '--help'])
  expect(stdout).not.toContain('--all-matching')
  expect(stdout).not.toContain('--by-reason')
})

test('a wrong call prints the usage of its own subcommand, and exits with 2', async () => {
  const { code, stdout, stderr } = await run(['rejects', 'list', '--limit', '0'])
  expect(code).toBe(2)
  expect(stdout).toBe('')
  expect(stderr).toContain('--limit takes a whole number')
  expect(stderr).toContain('usage: pledgeview rejects list')
  expect(stderr).toContain('pledgeview rejects list --help')
  expect(stderr).not.toContain('rejects retry')
})
