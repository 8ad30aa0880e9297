/**
 * One sort order of the list index: an array of the used slots.
 *
 * The array is replaced by a new one at every change, and never written to. So a list may keep it for as long as it
 * likes. A change of few slots costs a search for each, and one copy of the array.
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

export interface SlotOrderDependencies {
  /** A total order: no two slots are equal. */
  compare: (a: number, b: number) => number
  /** Sorts all slots in use at this moment, in steps. */
  sortAll: () => Sorting
}

/** A sort in steps of about a millisecond. What it sorts must not change between them. */
export type Sorting = Generator<void, Uint32Array, void>

// Above this share of all slots, sorting everything later is faster than searching for the place of each.
const manyShare = 1 / 8

/** Creates an order. It sorts when it is prepared or first read. */
export function createSlotOrder({ compare, sortAll }: SlotOrderDependencies): SlotOrder {
  /** Undefined until the slots are sorted, and after too many changes at once. */
  let ordered: Uint32Array | undefined
  /** Counts the changes. */
  let changes = 0

  /** How many slots come before this one. The first `from` slots do. */
  function placeOf(slot: number, slots: Uint32Array, from: number): number {
    let [low, high] = [from, slots.length]
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
      const places = Uint32Array.from(some, slot => placeOf(slot, all, 0)).sort()
      ordered = withoutPlaces(all, places)
    },

    putIn(some) {
      changes++
      if (ordered === undefined || some.length === 0) return
      if (some.length > ordered.length * manyShare) {
        ordered = undefined
        return
      }
      const all = new Uint32Array(ordered.length + some.length)
      let from = 0
      for (const [index, slot] of arrange(some).entries()) {
        const to = placeOf(slot, ordered, from)
        all.set(ordered.subarray(from, to), from + index)
        all[to + index] = slot
        from = to
      }
      all.set(ordered.subarray(from), from + some.length)
      ordered = all
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

/** The slots without those at these places, which are in ascending order. */
function withoutPlaces(slots: Uint32Array, places: Uint32Array): Uint32Array {
  const kept = new Uint32Array(slots.length - places.length)
  let from = 0
  for (const [index, place] of places.entries()) {
    kept.set(slots.subarray(from, place), from - index)
    from = place + 1
  }
  kept.set(slots.subarray(from), from - places.length)
  return kept
}
