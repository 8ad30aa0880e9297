/** Slots of the list index in one sort order, brought up to date when it is asked for. */

export interface SlotOrder {
  /** A slot's values changed, or it was taken into use (`isUsed`) or given free. */
  note(slot: number, isUsed: boolean): void
  /** All used slots in order; do not write into it. */
  slots(): Uint32Array
  compare(a: number, b: number): number
}

export interface SlotOrderDependencies {
  /** Total: no two slots are equal in it. */
  compare: (a: number, b: number) => number
  /** Every slot that is in use at this moment. */
  used: () => Iterable<number>
}

// Beyond this share of all slots, sorting everything is as quick as sorting the changed ones and merging.
const manyShare = 1 / 4
const manyMin = 1_024

export function createSlotOrder({ compare, used }: SlotOrderDependencies): SlotOrder {
  let ordered = new Uint32Array()
  /** What changed since; undefined: too much to tell. */
  let noted: Map<number, boolean> | undefined = new Map()

  /** Those that did not change are still in order among themselves, whatever the others have become. */
  function merged(changes: ReadonlyMap<number, boolean>): Uint32Array<ArrayBuffer> {
    const kept = ordered.filter(slot => !changes.has(slot))
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

  return {
    note(slot, isUsed) {
      noted?.set(slot, isUsed)
      if (noted && noted.size > Math.max(manyMin, ordered.length * manyShare)) noted = undefined
    },
    slots() {
      if (noted === undefined) ordered = Uint32Array.from(used()).sort(compare)
      else if (noted.size > 0) ordered = merged(noted)
      noted = new Map()
      return ordered
    },
    compare,
  }
}
