import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import type { Io } from '../../../../services/commands/command.ts'
import {
  createReporter,
  type ProgressReporter,
  reportOften,
} from '../../../../services/commands/rebuild/follow.ts'
import type { RebuildState, WorkPhase } from '../../../../services/generations/rebuild-log.ts'
import type { RebuildReport } from '../../../../services/generations/rebuilds.ts'

function reportOf(phase: RebuildState['phase'], more: Partial<RebuildReport> = {}, id = '1'): RebuildReport {
  const phaseMs: Partial<Record<WorkPhase, number>> = { preparing: 100, 'reading log': 1_000 }
  const state = { id, phase, detail: { phaseMs, progress: null } } as RebuildState
  return { ...state, isAlive: true, isPreviousKept: false, ...more }
}

describe('a rebuild that runs', () => {
  test('is reported again while nothing new is known, and its end is the last report', async () => {
    const seen: string[] = []
    const over = Promise.withResolvers<void>()
    const reporter: ProgressReporter = {
      report({ phase }) {
        seen.push(phase)
        if (seen.length === 2) over.resolve()
      },
      end: ({ phase }) => void seen.push(`end: ${phase}`),
    }
    const rebuilt = reportOf('rebuilt', { isAlive: false })
    const run = async (onProgress: (state: RebuildState) => void) => {
      onProgress(reportOf('folding'))
      await over.promise
      return rebuilt
    }
    expect(await reportOften(reporter, run)).toBe(rebuilt)
    expect(seen).toEqual(['folding', 'folding', 'end: rebuilt'])
  })
})

describe('what is reported on the way', () => {
  test('on a log: a line a second, and one for each phase that ended', async () => {
    const { io, written } = ioOf()
    const clock = { ms: 0 }
    const reporter = createReporter(io, { asJson: false, monotonicMs: () => clock.ms })
    for (; clock.ms < 3_000; clock.ms += 250) reporter.report(reportOf('reading log'))
    reporter.end(reportOf('folding'))
    const lines = (await written('stderr')).trim().split('\n')
    expect(lines.filter(line => line === 'reading log')).toHaveLength(3)
    expect(lines.filter(line => line === 'preparing    0.1 s')).toHaveLength(1)
    expect(lines.at(-1)).toBe('reading log  1.0 s')
  })

  test('for a program: an object a second, only on stdout', async () => {
    const { io, written } = ioOf()
    const clock = { ms: 0 }
    const reporter = createReporter(io, { asJson: true, monotonicMs: () => clock.ms })
    for (; clock.ms < 3_000; clock.ms += 250) reporter.report(reportOf('reading log'))
    reporter.end(reportOf('folding'))
    const lines = (await written('stdout')).trim().split('\n')
    expect(lines.map(line => JSON.parse(line).phase)).toEqual(['reading log', 'reading log', 'reading log'])
    expect(await written('stderr')).toBe('')
  })

  test('what a rebuild waits for, at once: no other state may follow until the wait ends', async () => {
    const { io, written } = ioOf()
    const reporter = createReporter(io, { asJson: true, monotonicMs: () => 0 })
    const state = reportOf('preparing')
    const waiting = { ...state, detail: { ...state.detail, waitsFor: 'Kafka' } }
    for (const reported of [state, state, waiting, waiting, state, waiting]) reporter.report(reported)
    const lines = (await written('stdout')).trim().split('\n')
    expect(lines.map(line => JSON.parse(line).waits_for)).toEqual([undefined, 'Kafka', 'Kafka'])
  })

  test('on a terminal: one line, wiped before the line of a finished phase is written', async () => {
    const { io, written } = ioOf({ isTTY: true })
    const reporter = createReporter(io, { asJson: false })
    reporter.report(reportOf('reading log'))
    reporter.end(reportOf('folding'))
    const erase = '\r\x1b[K'
    expect(await written('stderr')).toBe(
      `preparing    0.1 s\n${erase}reading log${erase}reading log  1.0 s\n`,
    )
  })
})

function ioOf(more: { isTTY?: boolean } = {}) {
  const streams = { stdout: new PassThrough(), stderr: Object.assign(new PassThrough(), more) }
  const io: Io = { stdin: new PassThrough(), ...streams }
  return { io, written: (name: 'stdout' | 'stderr') => text(streams[name].end()) }
}
