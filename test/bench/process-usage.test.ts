import { describe, expect, test } from 'vitest'
import { needs } from '../support/requirements.ts'
import { cpuSecondsOf, memoryOf } from './process-usage.ts'

const proc = { isMet: process.platform === 'linux', reason: 'only Linux has /proc' }

describe('the usage of a process', () => {
  test('its CPU time is that of all of its threads, as the process itself reports it', context => {
    needs(context, proc)
    const { user, system } = process.cpuUsage()
    const seconds = cpuSecondsOf(process.pid)
    // Counted in hundredths of a second, with user and system time apart.
    expect(seconds).toBeGreaterThanOrEqual((user + system) / 1e6 - 0.02)
    expect(seconds).toBeLessThan((user + system) / 1e6 + 1)
  })

  test('its memory is the resident memory, and its peak', context => {
    needs(context, proc)
    const held = Buffer.alloc(64 * 1024 ** 2, 1)
    const { residentBytes, peakBytes } = memoryOf(process.pid)
    expect(residentBytes).toBeGreaterThan(held.length)
    expect(peakBytes).toBeGreaterThanOrEqual(residentBytes)
    // The kernel's other counter, read later. The two count the pages of several threads in batches.
    expect(peakBytes).toBeLessThan(process.resourceUsage().maxRSS * 1024 * 1.05)
  })
})
