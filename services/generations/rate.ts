/** Measures how fast the work currently goes, and estimates how long the rest will take. */
export interface RateMeter {
  /** Records how much is done in total. */
  note(done: number): void
  perSecond(): number
  /** How many seconds this much more work will take; null if that is not known yet. */
  secondsFor(left: number): number | null
}

const windowMs = 20_000

/** `now`: a monotonic clock, ms. */
export function createRateMeter(now: () => number): RateMeter {
  let notes: { at: number; done: number }[] = []

  function perSecond(): number {
    const [first] = notes
    const last = notes.at(-1)
    if (!first || !last || last.at === first.at) return 0
    return ((last.done - first.done) * 1000) / (last.at - first.at)
  }

  return {
    note(done) {
      const at = now()
      notes = [...notes.filter(note => note.at >= at - windowMs), { at, done }]
    },
    perSecond,
    secondsFor(left) {
      const rate = perSecond()
      if (left <= 0) return 0
      return rate > 0 ? Math.ceil(left / rate) : null
    },
  }
}
