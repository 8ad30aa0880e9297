/**
 * A hash table of slots of the list index, with open addressing and linear probing. It keeps neither keys nor hashes: `hashOf` reads them
 * where the index has them. For 400,000 campaigns it takes 4 MB, about 15 MB less than a `Map`.
 */

export interface SlotTable {
  readonly size: number
  /** The first slot with this hash that fulfils the condition. */
  find(hash: number, isWanted: (slot: number) => boolean): number | undefined
  /** The slot must have its hash already, and must not be in the table yet. */
  add(slot: number): void
  /** Call this while the slot still has its hash. */
  remove(slot: number): void
}

const cellsMin = 2_048
// Above this share a search takes too many steps.
const fullShare = 3 / 4
const empty = 0

/** Creates an empty table. `hashOf`: a 32-bit hash of what the slot has; it must not change while the slot is in the table. */
export function createSlotTable(hashOf: (slot: number) => number, sizeExpected: number): SlotTable {
  /** A slot plus one, or `empty`. Its length is a power of two. */
  let cells = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(cellsMin, sizeExpected / fullShare))))
  let size = 0

  function place(slot: number): void {
    const mask = cells.length - 1
    let cell = hashOf(slot) & mask
    while (cells[cell] !== empty) cell = (cell + 1) & mask
    cells[cell] = slot + 1
  }

  function grow(): void {
    const used = cells.filter(content => content !== empty)
    cells = new Uint32Array(2 * cells.length)
    for (const content of used) place(content - 1)
  }

  return {
    get size() {
      return size
    },

    find(hash, isWanted) {
      const mask = cells.length - 1
      for (let cell = hash & mask; ; cell = (cell + 1) & mask) {
        const content = cells[cell] ?? empty
        if (content === empty) return undefined
        if (isWanted(content - 1)) return content - 1
      }
    },

    add(slot) {
      if (size + 1 > cells.length * fullShare) grow()
      place(slot)
      size++
    },

    remove(slot) {
      const mask = cells.length - 1
      let hole = hashOf(slot) & mask
      while (cells[hole] !== slot + 1) {
        if (cells[hole] === empty) return
        hole = (hole + 1) & mask
      }
      size--
      // Move the following cells up, unless that would put one before the cell at which its search starts.
      for (let cell = (hole + 1) & mask; cells[cell] !== empty; cell = (cell + 1) & mask) {
        const content = cells[cell] ?? empty
        const home = hashOf(content - 1) & mask
        if (((cell - home) & mask) < ((cell - hole) & mask)) continue
        cells[hole] = content
        hole = cell
      }
      cells[hole] = empty
    },
  }
}

/** FNV-1a over UTF-16 units. The last step mixes the high bits into the low bits, which select the cell. */
export function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
