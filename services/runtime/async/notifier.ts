import { sleep } from './sleep.ts'

export type Notifier = ReturnType<typeof createNotifier>

/** Wakes one waiting loop. If nothing waits when it is notified, the next wait returns at once. */
export function createNotifier() {
  let notified = new AbortController()
  return {
    notify: (): void => notified.abort(),

    /** Resolves when it is notified, when `msMax` have passed, or when the signal aborts. */
    async wait(msMax: number, signal: AbortSignal): Promise<void> {
      await sleep(msMax, AbortSignal.any([signal, notified.signal]))
      notified = new AbortController()
    },
  }
}
