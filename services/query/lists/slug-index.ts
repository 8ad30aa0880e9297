/**
 * The slug index: maps the code of a slug to the slot of its campaign. It keeps no slugs: a code is 32 bits, so the reader
 * compares the slug of the row that it finds. Slots by code are in a hash table with open addressing and linear probing.
 * 400,000 campaigns take 6 MB. Slugs that were chosen to have the same code make it slow: thousands of them would be noticed.
 */
import { crc32 } from 'node:zlib'

export interface SlugIndex {
  /** The slot that has this code; undefined if there is none, or several. */
  find(code: number): number | undefined
  /** Gives a slot its code. `isNew`: whether it has none yet. */
  put(slot: number, code: number, isNew: boolean): void
  /** The slot must have a code. */
  remove(slot: number): void
}

const cellsMin = 2_048
// Above this share a search takes too many steps.
const fullShare = 3 / 4
const empty = 0

/** The code of a slug. The same as `slugCode` in views/statements.ts. */
export function slugCodeOf(slug: string): number {
  return crc32(slug)
}

/** Creates an empty index with room for `sizeExpected` slots. */
export function createSlugIndex({ sizeExpected }: { sizeExpected: number }): SlugIndex {
  /** A slot plus one, or `empty`. Its length is a power of two. */
  let cells = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(cellsMin, sizeExpected / fullShare))))
  /** The code of each slot. */
  let codes = new Uint32Array(Math.max(cellsMin, sizeExpected))
  let size = 0

  function add(slot: number): void {
    const mask = cells.length - 1
    let cell = (codes[slot] ?? 0) & mask
    while (cells[cell] !== empty) cell = (cell + 1) & mask
    cells[cell] = slot + 1
  }

  function makeRoom(slot: number): void {
    if (slot >= codes.length) {
      const longer = new Uint32Array(Math.max(slot + 1, Math.ceil(codes.length * 1.5)))
      longer.set(codes)
      codes = longer
    }
    if (size + 1 <= cells.length * fullShare) return
    const used = cells.filter(content => content !== empty)
    cells = new Uint32Array(2 * cells.length)
    for (const content of used) add(content - 1)
  }

  function remove(slot: number): void {
    const mask = cells.length - 1
    let hole = (codes[slot] ?? 0) & mask
    while (cells[hole] !== slot + 1) {
      if (cells[hole] === empty) return
      hole = (hole + 1) & mask
    }
    size--
    // Move the following cells up, unless that would put one before the cell at which its search starts.
    for (let cell = (hole + 1) & mask; cells[cell] !== empty; cell = (cell + 1) & mask) {
      const content = cells[cell] ?? empty
      const home = (codes[content - 1] ?? 0) & mask
      if (((cell - home) & mask) < ((cell - hole) & mask)) continue
      cells[hole] = content
      hole = cell
    }
    cells[hole] = empty
  }

  return {
    find(code) {
      const mask = cells.length - 1
      let found: number | undefined
      for (let cell = code & mask; cells[cell] !== empty; cell = (cell + 1) & mask) {
        const slot = (cells[cell] ?? 0) - 1
        if (codes[slot] !== code) continue
        if (found !== undefined) return undefined
        found = slot
      }
      return found
    },

    put(slot, code, isNew) {
      if (!isNew) {
        if (codes[slot] === code) return
        remove(slot)
      }
      makeRoom(slot)
      codes[slot] = code
      add(slot)
      size++
    },

    remove,
  }
}
