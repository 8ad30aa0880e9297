export type Notifier = ReturnType<typeof createNotifier>

/** Wakes one waiting loop. If nothing waits when it is notified, the next wait returns at once. */
export function createNotifier() {
  let isNotified = false
  let wake: (() => void) | undefined

  return {
    notify(): void {
      isNotified = true
      wake?.()
    },

    /** Resolves when it is notified, when `msMax` have passed, or when the signal aborts. */
    wait(msMax: number, signal: AbortSignal): Promise<void> {
      return new Promise(resolve => {
        if (isNotified || signal.aborted) {
          isNotified = false
          resolve()
          return
        }
        const timer = setTimeout(done, msMax)
        signal.addEventListener('abort', done, { once: true })
        wake = done

        function done(): void {
          clearTimeout(timer)
          signal.removeEventListener('abort', done)
          wake = undefined
          isNotified = false
          resolve()
        }
      })
    },
  }
}
