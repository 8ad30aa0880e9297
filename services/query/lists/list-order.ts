/**
 * One sort order of the list index: an array of the used slots.
 *
 * The array is replaced by a new one at every change, and never written to once it was read. So a list may keep it for as
 * long as it likes. A change of few slots costs a search for each, and one new array.
 */
import { endianness } from 'node:os'

/** Called between parts of long work. It may let other work run. */
export type Pause = () => Promise<void>

export type SlotOrder = ReturnType<typeof createSlotOrder>

/** A sort in steps of about a millisecond. What it sorts must not change between them. */
export type Sorting = Generator<void, Uint32Array, void>

// So few slots are sorted faster by comparing than by ranking all, which takes about a millisecond.
const comparedMax = 256

// Above this share of all slots, sorting everything later is faster than searching for the place of each.
const manyShare = 1 / 8
// Spare room for slots that come later.
const roomShare = 1.1

/**
 * Creates an order. It sorts when it is prepared or first read. `compare`: a total order, in which no two slots are equal.
 * `sortAll`: sorts all slots in use at this moment.
 */
export function createSlotOrder(compare: (a: number, b: number) => number, sortAll: () => Sorting) {
  /** Undefined until the slots are sorted, and after too many changes at once. */
  let ordered: Uint32Array | undefined
  /** Whether somebody may keep `ordered`. If not, slots that are put in take the room of those that were taken out. */
  let isRead = true
  /** The place of each slot, if it is ranked. While the order does not change, no list ranks again. */
  let ranks = new Uint32Array()
  let isRanked = false
  /** What `arrangeFirst` has returned since the last change, by its number of slots. All are of the same array. */
  const firsts = new Map<number, Uint32Array>()
  let firstsOf: Uint32Array | undefined

  /** Call it before each change. The slots in order, unless they have to be sorted anew or there is nothing to change. */
  function changing(some: Uint32Array): Uint32Array | undefined {
    isRanked = false
    firsts.clear()
    if (ordered !== undefined && some.length > ordered.length * manyShare) ordered = undefined
    return some.length === 0 ? undefined : ordered
  }

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

  /** The places of these slots in their array, in this order. */
  function arranged(some: Uint32Array): Uint32Array {
    if (ordered === undefined || (!isRanked && some.length <= comparedMax)) {
      return Uint32Array.from(some.keys()).sort((a, b) => compare(some[a] ?? 0, some[b] ?? 0))
    }
    if (!isRanked) ranks = ranksOf(ordered, ranks)
    isRanked = true
    // Numbers are sorted many times faster than slots are compared. Each is a rank and a place.
    const keys = Float64Array.from(some, (slot, place) => (ranks[slot] ?? 0) * some.length + place).sort()
    return Uint32Array.from(keys, key => key % some.length)
  }

  return {
    /** All used slots in order. Do not write to the array. */
    slots(): Uint32Array {
      ordered ??= sortedAtOnce(sortAll())
      isRead = true
      return ordered
    },

    /** Sorts the slots in parts. Nothing may change meanwhile. */
    async prepare(pause: Pause): Promise<void> {
      const sorting = sortAll()
      let step = sorting.next()
      for (; !step.done; step = sorting.next()) await pause()
      ordered = step.value
    },

    /** Takes out slots that are about to change or to become free. Call this before their values change. */
    takeOut(some: Uint32Array): void {
      const all = changing(some)
      if (all === undefined) return
      const places = Uint32Array.from(some, slot => placeOf(slot, all, all.length)).sort()
      ordered = withoutPlaces(all, places)
      isRead = false
    },

    /** Puts in slots with their new values. Between `takeOut` and this call, `slots` must not be called. */
    putIn(some: Uint32Array): void {
      const before = changing(some)
      if (before === undefined) return
      const all = isRead ? longer(before, some.length) : extended(before, some.length)
      // From the last slot, so that each part of the array is moved once.
      const sorted = some.slice().sort(compare)
      let end = before.length
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

    /**
     * The places of the first `count` slots of another order's array, in this order. Until one of both orders changes, the same
     * array is returned again, so that a thousand lists of the latest changes are sorted once. Do not write to it.
     */
    arrangeFirst(slots: Uint32Array, count: number): Uint32Array {
      if (firstsOf !== slots) firsts.clear()
      firstsOf = slots
      const places = firsts.get(count) ?? arranged(slots.subarray(0, count))
      firsts.set(count, places)
      return places
    },
  }
}

/** The place of each slot, by slot. The array is this one, if it is long enough. */
function ranksOf(slots: Uint32Array, ranks: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  let last = 0
  for (let at = 0; at < slots.length; at++) last = Math.max(last, slots[at] ?? 0)
  const all = last < ranks.length ? ranks : new Uint32Array(Math.ceil(last * roomShare) + 1)
  for (let at = 0; at < slots.length; at++) all[slots[at] ?? 0] = at
  return all
}

/** Runs all steps of a sort without a pause. */
function sortedAtOnce(sorting: Sorting): Uint32Array {
  let step = sorting.next()
  while (!step.done) step = sorting.next()
  return step.value
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

/* How the list index sorts all slots: in steps of about a millisecond, so that requests run in between. */

const slotsAtOnce = 65_536
// Comparing two ids takes several times as long as reading a number.
const comparedAtOnce = 16_384

/** Checks that the slots are in order, as after a load, and sorts them in place if they are not: that takes one long step. */
export function* sortedUnlessInOrder(slots: Uint32Array, compare: (a: number, b: number) => number): Sorting {
  for (let at = 1; at < slots.length; at++) {
    if (compare(slots[at - 1] ?? 0, slots[at] ?? 0) > 0) return slots.sort(compare)
    if (at % comparedAtOnce === 0) yield
  }
  return slots
}

const digitBits = 16
const digits = 2 ** digitBits
const [lowWord, highWord] = endianness() === 'LE' ? [0, 1] : [1, 0]

/**
 * Sorts slots by their values in a column (without minus zero), ascending or descending. Equal slots keep the given
 * order. This is a radix sort of the bits of the numbers: comparing them pairwise would take fifty times as long.
 */
export function* sortedByColumn(slots: Uint32Array, column: Float64Array, direction: 1 | -1): Sorting {
  const words = new Uint32Array(column.buffer, column.byteOffset, 2 * column.length)
  let from = slots.slice()
  let to = new Uint32Array(slots.length)
  for (const [word, shift] of [
    [lowWord, 0],
    [lowWord, digitBits],
    [highWord, 0],
    [highWord, digitBits],
  ] as const) {
    // In the digit with the sign, positive numbers must follow negative ones. For negative numbers the bits are
    // inverted.
    const signBit = word === highWord && shift > 0 ? digits >>> 1 : 0
    const downMask = direction === 1 ? 0 : digits - 1
    const digitOf = (slot: number): number => {
      const isNegative = (words[2 * slot + highWord] ?? 0) >>> 31 === 1
      const mask = (isNegative ? digits - 1 : signBit) ^ downMask
      return (((words[2 * slot + word] ?? 0) >>> shift) & (digits - 1)) ^ mask
    }
    const places = new Uint32Array(digits)
    for (let at = 0; at < from.length; at++) {
      const digit = digitOf(from[at] ?? 0)
      places[digit] = (places[digit] ?? 0) + 1
      if (at % slotsAtOnce === slotsAtOnce - 1) yield
    }
    // All slots have the same digit here, for example because whole numbers end in zeros.
    if (places[digitOf(from[0] ?? 0)] === from.length) continue
    countsToPlaces(places)
    for (let at = 0; at < from.length; at++) {
      const slot = from[at] ?? 0
      const digit = digitOf(slot)
      const place = places[digit] ?? 0
      to[place] = slot
      places[digit] = place + 1
      if (at % slotsAtOnce === slotsAtOnce - 1) yield
    }
    ;[from, to] = [to, from]
  }
  return from
}

/** Replaces how many slots have each digit by the place of the first of them. */
function countsToPlaces(counts: Uint32Array): void {
  let place = 0
  for (let digit = 0; digit < counts.length; digit++) {
    const count = counts[digit] ?? 0
    counts[digit] = place
    place += count
  }
}
