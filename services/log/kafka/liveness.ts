/**
 * Whether a reader is alive: its group hears from it, its caller polls, and nothing has failed for good.
 *
 * Each of the three has a bound. So a reader that hangs does not keep partitions that others could read.
 */
export interface Liveness {
  /** The group's coordinator answered. */
  onAlive(): void
  /** Ends the reader's life. Every call throws this reason from then on. Only the first reason is kept. */
  fail(error: Error): void
  /** Throws the reason if the reader is no longer alive. */
  check(): void
  /** That reason, once there is one. */
  failure(): Error | undefined
  /** Whether the group still counts on this reader: the coordinator has heard from it within the session. */
  isMember(): boolean
  /** Runs a call of the caller. While one runs, the caller is not absent. */
  during<T>(call: () => Promise<T>): Promise<T>
  close(): void
}

export interface LivenessOptions {
  sessionMs: number
  outageMsMax: number
  callerMsMax: number
  monotonicMs: () => number
  onFailure: (error: Error) => void
}

export function createLiveness(options: LivenessOptions): Liveness {
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
    failure: () => failure,
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
