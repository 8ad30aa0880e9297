/** A bell that wakes one waiting loop: rung while nobody waits, it is heard by the next wait. */
export interface Bell {
  ring(): void
  /** Resolves when the bell rings, when `msMax` have passed, or when the signal aborts. */
  wait(msMax: number, signal: AbortSignal): Promise<void>
}

export function createBell(): Bell {
  let isRung = false
  let wake: (() => void) | undefined

  return {
    ring() {
      isRung = true
      wake?.()
    },

    wait(msMax, signal) {
      return new Promise(resolve => {
        if (isRung || signal.aborted) {
          isRung = false
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
          isRung = false
          resolve()
        }
      })
    },
  }
}
