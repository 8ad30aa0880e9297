/** Slots of the list index in one sort order, brought up to date when it is asked for. */
import { endianness } from 'node:os'

export interface SlotOrder {
  /** A slot's values changed, or it was taken into use (`isUsed`) or given free. */
  note(slot: number, isUsed: boolean): void
  /** All used slots in order; do not write into it. */
  slots(): Uint32Array
  /** These used slots in order. */
  arrange(some: Uint32Array): Uint32Array
}

export interface SlotOrderDependencies {
  /** Total: no two slots are equal in it. */
  compare: (a: number, b: number) => number
  /** Every slot that is in use at this moment, in the order of `compare`. */
  sortAll: () => Uint32Array
}

// Beyond this share of all slots, to sort everything is as quick as to sort the changed ones and merge.
const manyShare = 1 / 32
const manyMin = 1_024
// So few are quicker compared than all are brought up to date.
const comparedMax = 512

export function createSlotOrder({ compare, sortAll }: SlotOrderDependencies): SlotOrder {
  let ordered: Uint32Array = new Uint32Array()
  /** What changed since; undefined: too much to tell. */
  let noted: Map<number, boolean> | undefined = new Map()
  /** The place of each slot, once somebody needs it: to sort places is to sort plain numbers. */
  let places: Uint32Array | undefined

  /** Those that did not change are still in order among themselves, whatever the others have become. */
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

  /** How many of the slots stand before this one, of which the first `from` do. */
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

/** The slots that are marked, in the order in which they are given. */
export function marked(slots: Uint32Array, isMarked: (slot: number) => boolean): Uint32Array {
  const found = new Uint32Array(slots.length)
  let count = 0
  for (const slot of slots) if (isMarked(slot)) found[count++] = slot
  return found.slice(0, count)
}

/** Sorts in place what is not in order already, as it is after a load. */
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
  // Looking into an array for each of all slots costs a tenth of looking into the map.
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
 * The slots by their values in a column (no minus zero), up or down; equal ones stay in the order given. A radix sort of the
 * numbers' bits: of 400,000 it takes some 20 ms, where comparing them two by two holds up everything for a second.
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
    // Where the sign is, positive numbers follow negative ones; of these the greater bits are the lesser number.
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
    // All have the same digit here, as whole numbers have zeros at their end.
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
