import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createProgress, grouped, megabytes, progressText } from '../../../services/runtime/progress.ts'

describe('the progress bar', () => {
  test('says how much is done, how long the rest will take, and a detail', () => {
    const state = { label: 'appending', detail: '1,234 lines', elapsedMs: 30_000, format: megabytes }
    expect(progressText({ ...state, done: 100e6, total: 400e6 })).toBe(
      'appending [######------------------] 25%  100 MB of 400 MB  1:30 left  1,234 lines',
    )
    expect(progressText({ ...state, done: 0, total: 400e6 })).toContain('0%  0.0 MB of 400 MB  -:-- left')
    expect(progressText({ ...state, done: 5, total: 4 })).toContain('[########################] 100%')
    expect(progressText({ ...state, done: 2.5e6, total: undefined })).toBe('appending  2.5 MB  1,234 lines')
  })

  test('is painted on a terminal, some times a second, within its width, and wiped in the end', () => {
    const { stream, written } = terminal(40)
    let now = 0
    const progress = createProgress({ stream, label: 'projecting', total: 1_000, now: () => now })
    for (; now < 1_000; now += 10) progress.update(now)
    progress.done()
    const paints = written().split('\r\x1b[K').slice(1)
    expect(paints).toHaveLength(11)
    for (const text of paints) expect(text.length).toBeLessThan(40)
    expect(paints[5]).toContain('projecting [############------------]')
    expect(paints.at(-1)).toBe('')
  })

  test('writes nothing if there is no terminal', () => {
    const stream = new PassThrough()
    const progress = createProgress({ stream, label: 'projecting', total: 10 })
    progress.update(5)
    progress.done()
    expect(stream.read()).toBeNull()
  })

  test('groups digits by three', () => {
    expect([0, 999, 1_000, 1_234_567].map(grouped)).toEqual(['0', '999', '1,000', '1,234,567'])
  })
})

function terminal(columns: number): {
  stream: PassThrough & { isTTY: boolean; columns: number }
  written: () => string
} {
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns })
  return { stream, written: () => String(stream.read() ?? '') }
}
