/**
 * The id index: maps an id to its slot in the list index. It is a hash table of slots over the index's own array of
 * ids, with open addressing and linear probing. For 400,000 ids it takes 4 MB, about 15 MB less than a `Map`.
 */

export interface IdIndex {
  readonly size: number
  find(id: string): number | undefined
  /** The id must be in its slot of `ids` already, and must not be in the index yet. */
  add(id: string, slot: number): void
  /** Call this while the id is still in its slot. */
  remove(id: string): void
}

const cellsMin = 2_048
// Above this share a search takes too many steps.
const fullShare = 3 / 4
const empty = 0

/** Creates an empty index. `ids[slot]` is the id of a slot. */
export function createIdIndex(ids: readonly string[], { sizeExpected }: { sizeExpected: number }): IdIndex {
  /** A slot plus one, or `empty`. Its length is a power of two. */
  let cells = new Uint32Array(cellCount(sizeExpected))
  let size = 0

  /** The cell of the id, or the empty cell to put it into. */
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
      // Move the following cells up, unless that would put one before the cell at which its search starts.
      for (let cell = (hole + 1) & mask; cells[cell] !== empty; cell = (cell + 1) & mask) {
        const content = cells[cell] ?? empty
        const home = hashOf(ids[content - 1] ?? '') & mask
        if (((cell - home) & mask) < ((cell - hole) & mask)) continue
        cells[hole] = content
        hole = cell
      }
      cells[hole] = empty
    },
  }
}

function cellCount(size: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(cellsMin, size / fullShare)))
}

// FNV-1a over UTF-16 units. The last step mixes the high bits into the low bits, which select the cell.
function hashOf(id: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
