/** One sort order of the list index. It is brought up to date when it is read. */
import { endianness } from 'node:os'

export interface SlotOrder {
  /** Records that a slot changed, came into use (`isUsed`), or became free. */
  note(slot: number, isUsed: boolean): void
  /** All used slots in order. Do not write to the array. */
  slots(): Uint32Array
  /** Sorts these used slots. */
  arrange(some: Uint32Array): Uint32Array
}

export interface SlotOrderDependencies {
  /** A total order: no two slots are equal. */
  compare: (a: number, b: number) => number
  /** All slots in use at this moment, in the order of `compare`. */
  sortAll: () => Uint32Array
}

// Above this share of all slots, sorting everything is as fast as sorting the changed slots and merging them.
const manyShare = 1 / 32
const manyMin = 1_024
// So few slots are sorted faster by comparing than by updating the whole order.
const comparedMax = 512

/** Creates an order. It sorts when it is first read. */
export function createSlotOrder({ compare, sortAll }: SlotOrderDependencies): SlotOrder {
  let ordered: Uint32Array = new Uint32Array()
  /** The slots that changed since the last update; undefined if there are too many. */
  let noted: Map<number, boolean> | undefined = new Map()
  /** The place of each slot, computed when first needed: sorting places means sorting plain numbers. */
  let places: Uint32Array | undefined

  /** Merges the changed slots into the unchanged ones, which are still in order among themselves. */
  function merged(changes: ReadonlyMap<number, boolean>): Uint32Array {
    const kept = without(ordered, changes)
    const changed = Uint32Array.from([...changes].flatMap(([slot, isUsed]) => (isUsed ? slot : [])))
    changed.sort(compare)
    const all = new Uint32Array(kept.length + changed.length)
    let from = 0
    for (const [index, slot] of changed.entries()) {
      const to = placeOf(slot, kept, from)
      all.set(kept.subarray(from, to), from + index)
      all[to + index] = slot
      from = to
    }
    all.set(kept.subarray(from), from + changed.length)
    return all
  }

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

  function slots(): Uint32Array {
    if (noted?.size === 0) return ordered
    ordered = noted === undefined ? sortAll() : merged(noted)
    noted = new Map()
    places = undefined
    return ordered
  }

  return {
    note(slot, isUsed) {
      noted?.set(slot, isUsed)
      if (noted && noted.size > Math.max(manyMin, ordered.length * manyShare)) noted = undefined
    },
    slots,
    arrange(some) {
      if (some.length <= comparedMax) return some.slice().sort(compare)
      const all = slots()
      places ??= placesIn(all)
      const found = new Uint32Array(some.length)
      for (let at = 0; at < some.length; at++) found[at] = places[some[at] ?? 0] ?? 0
      found.sort()
      for (let at = 0; at < found.length; at++) found[at] = all[found[at] ?? 0] ?? 0
      return found
    },
  }
}

function placesIn(slots: Uint32Array): Uint32Array {
  let beyond = 0
  for (const slot of slots) if (slot >= beyond) beyond = slot + 1
  const places = new Uint32Array(beyond)
  for (let place = 0; place < slots.length; place++) places[slots[place] ?? 0] = place
  return places
}

/** The slots that fulfil the condition, in the given order. */
export function marked(slots: Uint32Array, isMarked: (slot: number) => boolean): Uint32Array {
  const found = new Uint32Array(slots.length)
  let count = 0
  for (const slot of slots) if (isMarked(slot)) found[count++] = slot
  // All of them: both lists are the same array, which nothing writes to.
  return count === slots.length ? slots : found.slice(0, count)
}

/** Sorts in place unless the slots are in order already, as after a load. */
export function sortedUnlessInOrder(
  slots: Uint32Array,
  compare: (a: number, b: number) => number,
): Uint32Array {
  for (let at = 1; at < slots.length; at++) {
    if (compare(slots[at - 1] ?? 0, slots[at] ?? 0) > 0) return slots.sort(compare)
  }
  return slots
}

function without(slots: Uint32Array, changes: ReadonlyMap<number, boolean>): Uint32Array {
  // Reading an array for every slot takes a tenth of the time of reading the map.
  let beyond = 0
  for (const slot of changes.keys()) beyond = Math.max(beyond, slot + 1)
  const isChanged = new Uint8Array(beyond)
  for (const slot of changes.keys()) isChanged[slot] = 1
  return marked(slots, slot => isChanged[slot] !== 1)
}

const digitBits = 16
const digits = 2 ** digitBits
const [lowWord, highWord] = endianness() === 'LE' ? [0, 1] : [1, 0]

/**
 * Sorts slots by their values in a column (without minus zero), ascending or descending. Equal slots keep the given
 * order. This is a radix sort of the bits of the numbers: it sorts 400,000 slots in about 20 ms, whereas comparing them
 * pairwise would block the process for a second.
 */
export function sortedByColumn(slots: Uint32Array, column: Float64Array, direction: 1 | -1): Uint32Array {
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
    for (const slot of from) {
      const digit = digitOf(slot)
      places[digit] = (places[digit] ?? 0) + 1
    }
    // All slots have the same digit here, for example because whole numbers end in zeros.
    if (places[digitOf(from[0] ?? 0)] === from.length) continue
    let place = 0
    for (let digit = 0; digit < digits; digit++) {
      const count = places[digit] ?? 0
      places[digit] = place
      place += count
    }
    for (const slot of from) {
      const digit = digitOf(slot)
      const at = places[digit] ?? 0
      to[at] = slot
      places[digit] = at + 1
    }
    ;[from, to] = [to, from]
  }
  return from
}
