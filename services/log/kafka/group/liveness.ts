/** Whether a reader is alive: its group hears from it, and nothing has failed for good. */
import type { KafkaReaderSettings } from '../reader.ts'

type Bounds = Required<Pick<KafkaReaderSettings, 'sessionMs' | 'outageMsMax'>>

export interface LivenessOptions extends Bounds {
  monotonicMs: () => number
  onFailure: (error: Error) => void
}

export function createLiveness(options: LivenessOptions) {
  const { sessionMs, outageMsMax, monotonicMs, onFailure } = options
  let aliveAt = monotonicMs()
  let failure: Error | undefined

  /** Ends the reader's life. Every call throws this reason from then on. Only the first reason is kept. */
  function fail(error: Error): void {
    if (failure) return
    failure = error
    onFailure(error)
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
    close() {
      failure ??= new Error('the reader is closed')
    },
  }
}
