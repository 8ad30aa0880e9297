/** A budget of bytes for each owner and period. */

export interface ByteBudget {
  /** Takes this number of bytes from the owner's budget. Returns false, and takes nothing, if too few are left. */
  take(owner: string, bytes: number): boolean
}

/** Creates budgets of `bytesMax` bytes each. An owner's period starts when it first takes something. */
export function createByteBudget({
  bytesMax,
  periodMs,
  now,
}: {
  bytesMax: number
  periodMs: number
  /** Unix milliseconds. */
  now: () => number
}): ByteBudget {
  /** In the order in which their periods started. */
  const spent = new Map<string, { since: number; bytes: number }>()

  function dropEnded(time: number): void {
    for (const [owner, { since }] of spent) {
      if (Math.abs(time - since) < periodMs) return
      spent.delete(owner)
    }
  }

  return {
    take(owner, bytes) {
      const time = now()
      dropEnded(time)
      const period = spent.get(owner) ?? { since: time, bytes: 0 }
      if (period.bytes + bytes > bytesMax) return false
      period.bytes += bytes
      spent.set(owner, period)
      return true
    },
  }
}
