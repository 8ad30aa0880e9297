/**
 * Which slot of the list index an id has: a hash table of slots over the index's own array of ids, open-addressed with
 * linear probing. A `Map` of 400,000 ids takes some 15 MB more than these 4 MB.
 */

export interface IdSlots {
  readonly size: number
  find(id: string): number | undefined
  /** The id must stand in its slot of `ids` already, and not be known yet. */
  add(id: string, slot: number): void
  /** To be called while the id still stands in its slot. */
  remove(id: string): void
  /** Every slot, from the lowest. */
  slots(): Uint32Array
}

const cellsMin = 2_048
// Fuller than this, a search takes too many steps.
const fullShare = 3 / 4
const empty = 0

/** `ids[slot]` is the id of a slot. */
export function createIdSlots(ids: readonly string[], { sizeExpected }: { sizeExpected: number }): IdSlots {
  /** A slot plus one, or `empty`. Its length is a power of two. */
  let cells = new Uint32Array(cellCount(sizeExpected))
  let size = 0

  /** Where the id is, or the empty cell where it belongs. */
  function cellOf(id: string): number {
    const mask = cells.length - 1
    let cell = hashOf(id) & mask
    for (;;) {
      const content = cells[cell] ?? empty
      if (content === empty || ids[content - 1] === id) return cell
      cell = (cell + 1) & mask
    }
  }

  function grow(): void {
    const used = cells.filter(content => content !== empty)
    cells = new Uint32Array(2 * cells.length)
    for (const content of used) cells[cellOf(ids[content - 1] ?? '')] = content
  }

  return {
    get size() {
      return size
    },

    find(id) {
      const content = cells[cellOf(id)] ?? empty
      return content === empty ? undefined : content - 1
    },

    add(id, slot) {
      if (size + 1 > cells.length * fullShare) grow()
      cells[cellOf(id)] = slot + 1
      size++
    },

    remove(id) {
      const mask = cells.length - 1
      let hole = cellOf(id)
      if (cells[hole] === empty) return
      size--
      // What follows moves up, unless that would put it before the cell where its search begins.
      for (let cell = (hole + 1) & mask; cells[cell] !== empty; cell = (cell + 1) & mask) {
        const content = cells[cell] ?? empty
        const home = hashOf(ids[content - 1] ?? '') & mask
        if (((cell - home) & mask) < ((cell - hole) & mask)) continue
        cells[hole] = content
        hole = cell
      }
      cells[hole] = empty
    },

    slots() {
      return cells
        .filter(content => content !== empty)
        .map(content => content - 1)
        .sort()
    },
  }
}

function cellCount(size: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(cellsMin, size / fullShare)))
}

// FNV-1a over UTF-16 units, and a last step that lets the high bits bear on the low ones, which are those used.
function hashOf(id: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
