/** Merges sources that are each in order of time, without holding more of them open than run at the same time. */

export interface Timed {
  time: number
}

export interface TimedSource<T extends Timed> {
  /** Nothing of the source is earlier. */
  startsAt: number
  /** Opened when the merge has come to `startsAt`. */
  open: () => Iterator<T>
}

interface OpenSource<T> {
  head: T
  rest: Iterator<T>
}

/** Everything of all sources in order of time. The sources must come in the order of their starts. */
export function* mergeByTime<T extends Timed>(
  sources: readonly TimedSource<T>[],
): Generator<T, void, undefined> {
  const heap: OpenSource<T>[] = []
  let opened = 0
  for (;;) {
    const next = sources[opened]
    const earliest = heap[0]
    if (next && (!earliest || next.startsAt <= earliest.head.time)) {
      opened++
      const rest = next.open()
      const head = rest.next()
      if (!head.done) siftUp(heap, { head: head.value, rest })
      continue
    }
    if (!earliest) return
    yield earliest.head
    const following = earliest.rest.next()
    const replacement = following.done ? heap.pop() : { head: following.value, rest: earliest.rest }
    if (replacement && replacement !== earliest) siftDown(heap, replacement)
  }
}

/** Adds to a binary heap whose first is the earliest. */
function siftUp<T extends Timed>(heap: OpenSource<T>[], added: OpenSource<T>): void {
  let at = heap.length
  while (at > 0) {
    const above = (at - 1) >> 1
    const parent = heap[above]
    if (!parent || parent.head.time <= added.head.time) break
    heap[at] = parent
    at = above
  }
  heap[at] = added
}

/** Puts another in the place of the heap's first, and lets it sink to where it belongs. */
function siftDown<T extends Timed>(heap: OpenSource<T>[], replacement: OpenSource<T>): void {
  let at = 0
  for (;;) {
    const left = heap[2 * at + 1]
    const right = heap[2 * at + 2]
    const isRight = left !== undefined && right !== undefined && right.head.time < left.head.time
    const earlier = isRight ? right : left
    if (!earlier || replacement.head.time <= earlier.head.time) break
    heap[at] = earlier
    at = 2 * at + (isRight ? 2 : 1)
  }
  heap[at] = replacement
}
