export type Notifier = ReturnType<typeof createNotifier>

/** Wakes one waiting loop. If nothing waits when it is notified, the next wait returns at once. */
export function createNotifier() {
  let isNotified = false
  let wake = () => {}

  return {
    notify(): void {
      isNotified = true
      wake()
    },

    /** Resolves when it is notified, when `msMax` have passed, or when the signal aborts. */
    async wait(msMax: number, signal: AbortSignal): Promise<void> {
      if (!isNotified && !signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const done: () => void = resolve
        wake = done
        const timer = setTimeout(done, msMax)
        signal.addEventListener('abort', done, { once: true })
        await promise
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
      }
      isNotified = false
    },
  }
}
