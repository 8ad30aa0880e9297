/** Merges sources that are each in order of time. Only the sources that have begun and not ended are open. */

export interface Timed {
  time: number
}

export interface TimedSource<T extends Timed> {
  /** No item of the source is earlier. */
  startsAt: number
  /** Called when the merge has reached `startsAt`. */
  open: () => Iterator<T>
}

/** All items of all sources in order of time. The sources must be in the order of their starts. */
export function* mergeByTime<T extends Timed>(
  sources: readonly TimedSource<T>[],
): Generator<T, void, undefined> {
  // In descending order of time, so that the earliest is taken from the end.
  const open: { head: T; rest: Iterator<T> }[] = []
  const advance = (rest: Iterator<T>): void => {
    const next = rest.next()
    if (next.done) return
    let low = 0
    let high = open.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((open[middle]?.head.time ?? 0) > next.value.time) low = middle + 1
      else high = middle
    }
    open.splice(low, 0, { head: next.value, rest })
  }
  for (let opened = 0; ; ) {
    const next = sources[opened]
    const earliest = open.at(-1)
    if (next && (!earliest || next.startsAt <= earliest.head.time)) {
      opened++
      advance(next.open())
    } else if (earliest) {
      open.pop()
      yield earliest.head
      advance(earliest.rest)
    } else return
  }
}
