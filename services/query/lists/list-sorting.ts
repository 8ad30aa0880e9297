/** How the list index sorts all slots: in steps of about a millisecond, so that requests run in between. */
import { endianness } from 'node:os'
import type { Sorting } from './list-order.ts'

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
