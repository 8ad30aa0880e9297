/**
 * The text of many rows, as bytes: a batch holds tens of thousands of lines for a while, and as strings they would be
 * that many objects for the garbage collector to carry along.
 */
export interface RowText {
  readonly rows: number
  /** Adds one line; it brings its own newline. */
  add(line: string): void
  /** All lines as one string. */
  text(): string
}

export function createRowText(bytesInitial = 65_536): RowText {
  let buffer = Buffer.allocUnsafe(bytesInitial)
  let used = 0
  let rows = 0

  return {
    get rows() {
      return rows
    },

    add(line) {
      // A UTF-16 unit becomes at most three bytes of UTF-8.
      const needed = used + line.length * 3
      if (needed > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(needed, buffer.length * 2))
        buffer.copy(larger, 0, 0, used)
        buffer = larger
      }
      used += buffer.write(line, used, 'utf8')
      rows++
    },

    text: () => buffer.toString('utf8', 0, used),
  }
}
