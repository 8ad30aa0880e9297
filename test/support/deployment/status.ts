/** What the commands of a deployment say, as JSON. */

import { expect, vi } from 'vitest'
import { lagRecords } from '../../../services/log/port.ts'
import { untilDrained } from '../events/kickstarter.ts'
import type { Deployment } from './deployment.ts'

/** What tests read of the output of `status --json`. */
export interface StatusOutput {
  clickhouse: { ok: boolean; detail: string }
  fold: { pending_batches: number; quarantine: unknown[] }
  tables: { public_campaigns: number; known_pledges: number; active_keys: number }
  projector: { members: number; lag: { committed: number; end: number }[] }
  rejects: { total: number }
  lag: { as_of: string }
  stopped: { at: string; reason: string; is_noted: boolean } | null
}

/** The output of a command, which must succeed. */
export async function outputOf<T>(deployment: Deployment, args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await deployment.command([...args, '--json'])
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as T
}

/**
 * Resolves with the status for which everything that is in the log is folded. The projectors are asked first: the command is a
 * process, and a process for each look would take the CPU from what it waits for.
 */
export function whenFolded(
  deployment: Deployment,
  wait: { timeout: number; interval: number },
): Promise<StatusOutput> {
  return vi.waitFor(async () => {
    await untilDrained(...deployment.projectors())
    const status = await outputOf<StatusOutput>(deployment, ['status'])
    const { pending_batches, quarantine } = status.fold
    expect({ waiting: lagRecords(status.projector.lag), pending_batches, quarantine }).toEqual({
      waiting: 0,
      pending_batches: 0,
      quarantine: [],
    })
    return status
  }, wait)
}
