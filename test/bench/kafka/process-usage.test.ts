import { describe, expect, test } from 'vitest'
import { needs } from '../../support/requirements.ts'
import { cpuSecondsOf, memoryOf } from './process-usage.ts'

const proc = { isMet: process.platform === 'linux', reason: 'only Linux has /proc' }

describe('what a process has taken', () => {
  test('its processor time is that of all of its threads, as the process itself knows it', context => {
    needs(context, proc)
    const { user, system } = process.cpuUsage()
    const seconds = cpuSecondsOf(process.pid)
    // Counted in hundredths of a second, user and system apart.
    expect(seconds).toBeGreaterThanOrEqual((user + system) / 1e6 - 0.02)
    expect(seconds).toBeLessThan((user + system) / 1e6 + 1)
  })

  test('its memory is what is resident, and the most that ever was', context => {
    needs(context, proc)
    const held = Buffer.alloc(64 * 1024 ** 2, 1)
    const { residentBytes, peakBytes } = memoryOf(process.pid)
    expect(residentBytes).toBeGreaterThan(held.length)
    expect(peakBytes).toBeGreaterThanOrEqual(residentBytes)
    // The kernel's other word for it, asked later; the two count pages of several threads in lots.
    expect(peakBytes).toBeLessThan(process.resourceUsage().maxRSS * 1024 * 1.05)
  })
})
