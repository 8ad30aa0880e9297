/** Whether a reader is alive: its group hears from it, and nothing has failed for good. */
import type { KafkaReaderSettings } from '../reader.ts'

export function createLiveness(
  { sessionMs, outageMsMax }: KafkaReaderSettings,
  onFailure: (error: Error) => void,
) {
  let aliveAt = performance.now()
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
      aliveAt = performance.now()
    },
    /** Throws the reason if the reader is no longer alive. */
    check() {
      const silentMs = performance.now() - aliveAt
      if (silentMs > outageMsMax) {
        fail(new Error(`the Kafka cluster has been away for ${Math.round(silentMs)} ms`))
      }
      if (failure) throw failure
    },
    failure: () => failure,
    /** Whether the group still counts on this reader: the coordinator has heard from it within the session. */
    isMember: () => !failure && performance.now() - aliveAt <= sessionMs,
    close() {
      failure ??= new Error('the reader is closed')
    },
  }
}
