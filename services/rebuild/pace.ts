/** How fast something goes, lately, and how long the rest will take. */
export interface Pace {
  /** Notes how much is done. */
  note(done: number): void
  perSecond(): number
  /** Seconds that this much more will take; null where there is no telling yet. */
  secondsFor(left: number): number | null
}

const windowMs = 20_000

/** `now`: a clock that only goes forward, ms. */
export function createPace(now: () => number): Pace {
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
