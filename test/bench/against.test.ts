import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { type BenchRun, comparisonText, readRun, warningsOf } from './against.ts'
import type { Figure } from './report.ts'

const machine = {
  cpu: 'Some CPU',
  cores: 4,
  memoryBytes: 8 * 2 ** 30,
  node: 'v24.0.0',
  clickhouse: '26.7',
  loadBefore: 0.1,
}

function runOf(figures: Figure[], changes: Partial<typeof machine> = {}): BenchRun {
  return { machine: { ...machine, ...changes }, benches: [{ bench: 'ingest', notes: [], figures }] }
}

const then = runOf([
  { name: 'events', value: 100_000, unit: 'events/s' },
  { name: 'share', value: 0.25, unit: '', target: { atLeast: 0.5 } },
  { name: 'no longer measured', value: 3, unit: 's' },
  { name: 'errors', value: 0, unit: '' },
])
const now = runOf([
  { name: 'events', value: 150_000, unit: 'events/s' },
  { name: 'share', value: 0.6, unit: '', target: { atLeast: 0.5 } },
  { name: 'errors', value: 2, unit: '' },
  { name: 'first measured now', value: 7, unit: 'ms' },
])

/** The cells of the line of a figure. */
function lineOf(text: string, name: string): string[] {
  const line = text.split('\n').find(one => one.trimStart().startsWith(name)) ?? ''
  return line.trim().split(/ {2,}/)
}

describe('the comparison of two runs', () => {
  test('each figure has its value then and now, their ratio, and the verdict on its target', () => {
    const text = comparisonText(then, now)
    expect(lineOf(text, 'events')).toEqual(['events', '100,000 events/s', '150,000 events/s', '1.50'])
    expect(lineOf(text, 'share')).toEqual(['share', '0.250', '0.600', '2.40', 'met (target >= 0.500)'])
  })

  test('a figure of only one run is shown as new or gone, and zero has no ratio', () => {
    const text = comparisonText(then, now)
    expect(lineOf(text, 'first measured now')).toEqual(['first measured now', 'new', '7 ms'])
    expect(lineOf(text, 'no longer measured')).toEqual(['no longer measured', '3 s', 'gone'])
    expect(lineOf(text, 'errors')).toEqual(['errors', '0', '2'])
  })

  test('both machines are named, and a difference between them is a warning', () => {
    const other = runOf([], { cpu: 'Other CPU', cores: 64, memoryBytes: 2 ** 40 })
    const text = comparisonText(then, other)
    expect(text).toContain('then: Some CPU, 4 cores')
    expect(text).toContain('now:  Other CPU, 64 cores')
    expect(text).toContain('The machines differ (cpu, cores, memory)')
    expect(warningsOf(then, now)).toEqual([])
    expect(warningsOf(then, runOf([], { memoryBytes: machine.memoryBytes + 1 }))).toEqual([])
  })

  test('other work on a machine, and another size, are warnings', () => {
    const busy = { ...runOf([], { loadBefore: 3.5 }), size: { campaigns: 1, pledges: 2 } }
    expect(warningsOf({ ...then, size: { campaigns: 1, pledges: 3 } }, busy)).toEqual([
      expect.stringContaining('Other work was running now (load 3.50)'),
      expect.stringContaining('The sizes differ'),
    ])
  })
})

describe('reading an earlier run', () => {
  test('what --json prints is read', () => {
    const text = JSON.stringify({ ...then, failures: [] })
    expect(readRun(text, 'then.json').benches).toEqual(then.benches)
  })

  test.each([
    ['no JSON', 'then.json is not the --json output of npm run bench: it is not JSON'],
    ['{"machine":{}}', 'then.json is not the --json output of npm run bench: machine.cpu'],
  ])('%s is refused, with the place', (text, message) => {
    expect(() => readRun(text, 'then.json')).toThrow(message)
  })
})

test('npm run bench -- --against with a file that is not there ends before anything is measured', () => {
  const script = new URL('main.ts', import.meta.url).pathname
  expect(spawnSync(process.execPath, [script, '--against', 'none.json'], { encoding: 'utf8' })).toMatchObject(
    {
      status: 2,
      stderr: expect.stringContaining('none.json'),
    },
  )
})
