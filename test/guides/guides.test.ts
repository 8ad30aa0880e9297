/**
 * Pastes the lines of the guides, one block after the other, into a shell beside a running service, as readers do (reader.ts),
 * and compares the output with what the guides show. The service is the one that the README starts.
 */
import type { ChildProcess } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../../services/runtime/free-port.ts'
import { needs } from '../support/runner/requirements.ts'
import { type Block, blocksOf, fencesOf, guides, nameOf, operatorGuides, readGuide } from './blocks.ts'
import { interrupt, openReader, programsOf, pyPi, type Reader } from './reader.ts'

const blockMsMax = 240_000
const startMsMax = 240_000
const ports: Record<number, number> = {}
let reader: Reader
let service: ChildProcess

beforeAll(async () => {
  for (const port of [8080, 8081, 9090, 8123, 9000]) ports[port] = await freePort()
  reader = openReader({ ports })
  const { text, how } = startBlock()
  service = await reader.start(text, how.sign)
}, startMsMax)

afterAll(() => reader?.close(), startMsMax)

const runnable = (guide: (typeof guides)[number]) =>
  blocksOf(guide).filter(
    ({ isDistributed, how }) => !isDistributed && how.kind !== 'not run' && how.kind !== 'compose',
  )

// A page whose lines another suite runs has none here.
const tried = guides.filter(guide => runnable(guide).length > 0)

describe.each(tried)('the lines of %s work, and print what it shows', guide => {
  const blocks = runnable(guide)
  beforeAll(() => reader.turnPage())

  test.for(blocks.map(block => ({ name: nameOf(block), block })))(
    '$name',
    { timeout: blockMsMax },
    async ({ block }, context) => {
      needs(context, programsOf(block))
      if (block.how.kind === 'pypi') needs(context, await pyPi())
      await paste(block)
    },
  )
})

describe('the SQL of contracts/tables/README.md', () => {
  const statements = fencesOf(readGuide('contracts/tables/README.md'))
    .filter(({ language }) => language === 'sql')
    .flatMap(({ text }) => text.split(';'))
    .map(text => text.trim())
    .filter(text => text !== '')
    .map(text => ({ name: text.split('\n', 1)[0], text }))
  const isQuestion = ({ text }: { text: string }) => text.startsWith('SELECT')

  test.each(statements.filter(isQuestion))('works for an analyst: $name', async ({ text }) => {
    await expect(ask(text)).resolves.toBeTypeOf('string')
  })

  // The test's server does not allow users that are created by SQL.
  test.each(statements.filter(statement => !isQuestion(statement)))(
    'is parsed by ClickHouse, and not run: $name',
    async ({ text }) => {
      await expect(ask('SELECT formatQuery({text:String})', { param_text: text })).resolves.toBeTypeOf(
        'string',
      )
    },
  )

  test('names every view, and no others', async () => {
    const views = await ask("SELECT name FROM system.tables WHERE database = 'crowdfunding' ORDER BY name")
    const rows = readGuide('contracts/tables/README.md').matchAll(/^\| `(\w+)` \|/gm)
    expect([...rows].map(([, name]) => name).toSorted()).toEqual(views.trim().split('\n'))
  })
})

test("the operator's guide names every metric of the program, and no others", async () => {
  const response = await fetch(`http://127.0.0.1:${ports[9090]}/metrics`)
  const there = [...(await response.text()).matchAll(/^# HELP (pledgeview_\w+)/gm)].map(([, name]) => name)
  const named = operatorGuides
    .map(readGuide)
    .join('')
    .matchAll(/`(pledgeview_\w+)`/g)
  const others = /_(all|definer|query|analyst|portal|counter|(ledger|read)_\d+)$/
  const metrics = [...named].map(([, name = '']) => name).filter(name => !others.test(name))
  expect([...new Set(metrics)].toSorted()).toEqual(there.toSorted())
})

async function paste(block: Block): Promise<void> {
  const { kind } = block.how
  if (kind === 'stopped') await interrupt(service)
  if (kind !== 'background') await reader.paste(block)
  // The block that starts the service was pasted before all others.
  else if (block.text !== startBlock().text) await interrupt(await reader.start(block.text, block.how.sign))
  if (kind === 'stopped') {
    service = await reader.start('npm start', 'serves')
    await vi.waitFor(async () => expect(await isReady()).toBe(true), { timeout: startMsMax, interval: 200 })
  }
}

async function isReady(): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${ports[9090]}/readyz`)
  return response.ok
}

function startBlock() {
  const block = blocksOf('README.md').find(({ text }) => text.includes('npm start'))
  if (block?.how.kind !== 'background') throw new Error('the README does not say how to start')
  return { text: block.text, how: block.how }
}

/** Queries as an analyst. Throws ClickHouse's error text. */
async function ask(query: string, parameters: Record<string, string> = {}): Promise<string> {
  const search = new URLSearchParams({ user: 'analyst', ...parameters })
  const response = await fetch(`http://127.0.0.1:${ports[8123]}/?${search}`, { method: 'POST', body: query })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}
