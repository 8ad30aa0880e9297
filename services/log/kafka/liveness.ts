/**
 * Whether a reader is alive: its group hears from it, its caller polls, and nothing has failed for good.
 *
 * Each of the three has a bound. So a reader that hangs does not keep partitions that others could read.
 */
import type { KafkaReaderSettings } from './reader.ts'

type Bounds = Required<Pick<KafkaReaderSettings, 'sessionMs' | 'outageMsMax' | 'callerMsMax'>>

export interface LivenessOptions extends Bounds {
  monotonicMs: () => number
  onFailure: (error: Error) => void
}

export function createLiveness(options: LivenessOptions) {
  const { sessionMs, outageMsMax, callerMsMax, monotonicMs, onFailure } = options
  let aliveAt = monotonicMs()
  let failure: Error | undefined
  let calls = 0
  let absence: NodeJS.Timeout | undefined

  /** Ends the reader's life. Every call throws this reason from then on. Only the first reason is kept. */
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
    /** The group's coordinator answered. */
    onAlive() {
      aliveAt = monotonicMs()
    },
    /** Throws the reason if the reader is no longer alive. */
    check() {
      const silentMs = monotonicMs() - aliveAt
      if (silentMs > outageMsMax) {
        fail(new Error(`the Kafka cluster has been away for ${Math.round(silentMs)} ms`))
      }
      if (failure) throw failure
    },
    failure: () => failure,
    /** Whether the group still counts on this reader: the coordinator has heard from it within the session. */
    isMember: () => !failure && monotonicMs() - aliveAt <= sessionMs,
    /** Runs a call of the caller. While one runs, the caller is not absent. */
    async during<T>(call: () => Promise<T>): Promise<T> {
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
