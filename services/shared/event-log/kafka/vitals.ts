/**
 * Whether a reader lives: its group hears of it, its caller comes back, and nothing has failed for good.
 *
 * Each of the three has a bound, so that nothing that hangs keeps partitions that others could read.
 */
export interface Vitals {
  /** The group's coordinator answered. */
  onAlive(): void
  /** Ends the reader's life, with the reason that every call throws from then on. The first one stays. */
  fail(error: Error): void
  /** Throws the reason where the reader lives no more. */
  check(): void
  /** Whether the group can still count on this reader: it has heard of it within the session. */
  isMember(): boolean
  /** Runs a call of the caller: while one runs, the caller is not away. */
  during<T>(call: () => Promise<T>): Promise<T>
  close(): void
}

export interface VitalsOptions {
  sessionMs: number
  outageMsMax: number
  callerMsMax: number
  monotonicMs: () => number
  onFailure: (error: Error) => void
}

export function createVitals(options: VitalsOptions): Vitals {
  const { sessionMs, outageMsMax, callerMsMax, monotonicMs, onFailure } = options
  let aliveAt = monotonicMs()
  let failure: Error | undefined
  let calls = 0
  let absence: NodeJS.Timeout | undefined

  function fail(error: Error): void {
    if (failure) return
    failure = error
    clearTimeout(absence)
    onFailure(error)
  }

  function callerIsAway(): void {
    fail(new Error(`the reader's caller was away for ${callerMsMax} ms, so its partitions were given up`))
  }

  return {
    fail,
    onAlive() {
      aliveAt = monotonicMs()
    },
    check() {
      const silentMs = monotonicMs() - aliveAt
      if (silentMs > outageMsMax) {
        fail(new Error(`the Kafka cluster has been away for ${Math.round(silentMs)} ms`))
      }
      if (failure) throw failure
    },
    isMember: () => !failure && monotonicMs() - aliveAt <= sessionMs,
    async during(call) {
      calls++
      clearTimeout(absence)
      try {
        return await call()
      } finally {
        calls--
        if (calls === 0 && !failure) absence = setTimeout(callerIsAway, callerMsMax).unref()
      }
    },
    close() {
      failure ??= new Error('the reader is closed')
      clearTimeout(absence)
    },
  }
}
