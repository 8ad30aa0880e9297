/** `--help`: each command and subcommand describes itself alone, with an example and its cost. */
import { describe, expect, test } from 'vitest'
import { commands } from '../../../services/commands/commands.ts'
import type { Help } from '../../../services/commands/help.ts'
import { runHere } from '../../support/deployment/run-here.ts'

interface Call {
  words: string[]
  help: Help
}

const loaded = await Promise.all(
  Object.entries(commands).map(async ([name, { load }]) => ({ name, help: (await load()).help })),
)
const calls: Call[] = loaded.flatMap(({ name, help }) => [
  { words: [name], help },
  ...Object.entries(help.subcommands ?? {}).map(([verb, own]) => ({ words: [name, verb], help: own })),
])

describe.each(calls)('pledgeview $words', ({ words, help }) => {
  test('describes itself on stdout, and fits a terminal', async () => {
    const { code, stdout, stderr } = await runHere([...words, '--help'])
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

const ofSiblings = loaded.flatMap(({ name, help: { options, subcommands = {} } }) => {
  const all = Object.assign({}, options, ...Object.values(subcommands).map(own => own.options))
  return Object.entries(subcommands).flatMap(([verb, own]) =>
    Object.keys(all)
      .filter(option => option.startsWith('--') && !(option in (own.options ?? {})))
      .map(option => ({ words: [name, verb, ...option.replace(' N', ' 1').split(' ')] })),
  )
})

test.each(ofSiblings)(
  'pledgeview $words is refused, because the subcommand has no such option',
  async ({ words }) => {
    const { code, stderr } = await runHere(words)
    expect([code, stderr]).toEqual([2, expect.stringContaining(String(words[2]))])
  },
)

test.each(['keys', 'rejects'])(
  'an option before the subcommand of %s is refused, and the message says where it belongs',
  async name => {
    const { code, stderr } = await runHere([name, '--json', 'list'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`the subcommand comes before --json: ${name} `),
    ])
  },
)
