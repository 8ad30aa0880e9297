/**
 * One sort order of the list index: an array of the used slots.
 *
 * The array is replaced by a new one at every change, and never written to once it was read. So a list may keep it for as
 * long as it likes. A change of few slots costs a search for each, and one new array.
 */

/** Called between parts of long work. It may let other work run. */
export type Pause = () => Promise<void>

export interface SlotOrder {
  /** All used slots in order. Do not write to the array. */
  slots(): Uint32Array
  /** Sorts the slots in parts, unless they are in order already. */
  prepare(pause: Pause): Promise<void>
  /** Takes out slots that are about to change or to become free. Call this before their values change. */
  takeOut(some: Uint32Array): void
  /** Puts in slots with their new values. Between `takeOut` and this call, `slots` must not be called. */
  putIn(some: Uint32Array): void
  /** Sorts these used slots. */
  arrange(some: Uint32Array): Uint32Array
}

/** A sort in steps of about a millisecond. What it sorts must not change between them. */
export type Sorting = Generator<void, Uint32Array, void>

// Above this share of all slots, sorting everything later is faster than searching for the place of each.
const manyShare = 1 / 8

/**
 * Creates an order. It sorts when it is prepared or first read. `compare`: a total order, in which no two slots are equal.
 * `sortAll`: sorts all slots in use at this moment.
 */
export function createSlotOrder(
  compare: (a: number, b: number) => number,
  sortAll: () => Sorting,
): SlotOrder {
  /** Undefined until the slots are sorted, and after too many changes at once. */
  let ordered: Uint32Array | undefined
  /** Whether somebody may keep `ordered`. If not, slots that are put in take the room of those that were taken out. */
  let isRead = true
  /** Counts the changes. */
  let changes = 0

  /** How many of the first `end` slots come before this one. */
  function placeOf(slot: number, slots: Uint32Array, end: number): number {
    let [low, high] = [0, end]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compare(slots[middle] ?? 0, slot) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  function arrange(some: Uint32Array): Uint32Array {
    return some.slice().sort(compare)
  }

  return {
    slots() {
      ordered ??= sortedAtOnce(sortAll())
      isRead = true
      return ordered
    },

    async prepare(pause) {
      if (ordered !== undefined) return
      const before = changes
      const sorting = sortAll()
      for (let step = sorting.next(); ; step = sorting.next()) {
        if (changes !== before) return
        if (step.done) {
          ordered = step.value
          isRead = true
          return
        }
        await pause()
      }
    },

    takeOut(some) {
      changes++
      if (ordered === undefined || some.length === 0) return
      if (some.length > ordered.length * manyShare) {
        ordered = undefined
        return
      }
      const all = ordered
      const places = Uint32Array.from(some, slot => placeOf(slot, all, all.length)).sort()
      ordered = withoutPlaces(all, places)
      isRead = false
    },

    putIn(some) {
      changes++
      if (ordered === undefined || some.length === 0) return
      if (some.length > ordered.length * manyShare) {
        ordered = undefined
        return
      }
      const all = isRead ? longer(ordered, some.length) : extended(ordered, some.length)
      // From the last slot, so that each part of the array is moved once.
      const sorted = arrange(some)
      let end = ordered.length
      for (let index = sorted.length - 1; index >= 0; index--) {
        const slot = sorted[index] ?? 0
        const place = placeOf(slot, all, end)
        all.copyWithin(place + index + 1, place, end)
        all[place + index] = slot
        end = place
      }
      ordered = all
      isRead = false
    },

    arrange,
  }
}

/** Runs all steps of a sort without a pause. */
export function sortedAtOnce(sorting: Sorting): Uint32Array {
  for (;;) {
    const step = sorting.next()
    if (step.done) return step.value
  }
}

/** The slots without those at these places, which are in ascending order. Their room stays behind the others. */
function withoutPlaces(slots: Uint32Array, places: Uint32Array): Uint32Array {
  const kept = new Uint32Array(slots.length)
  let from = 0
  for (const [index, place] of places.entries()) {
    kept.set(slots.subarray(from, place), from - index)
    from = place + 1
  }
  kept.set(slots.subarray(from), from - places.length)
  return kept.subarray(0, slots.length - places.length)
}

/** The same slots in an array with room for more behind them: the same array, if it has the room. */
function extended(slots: Uint32Array, more: number): Uint32Array {
  const length = slots.length + more
  return length <= slots.buffer.byteLength / slots.BYTES_PER_ELEMENT
    ? new Uint32Array(slots.buffer, 0, length)
    : longer(slots, more)
}

function longer(slots: Uint32Array, more: number): Uint32Array {
  const all = new Uint32Array(slots.length + more)
  all.set(slots)
  return all
}
