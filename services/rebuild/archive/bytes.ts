/** Reads a stream in the sizes that a format needs. Holds no more than the requested bytes and one chunk. */

export interface ByteReader {
  /** The next bytes without moving on: `count` of them, or fewer at the end. */
  peek(count: number): Promise<Buffer>
  /** The next `count` bytes. Throws `CutOff` if there are fewer. */
  read(count: number): Promise<Buffer>
  isAtEnd(): Promise<boolean>
  /** All that is left, chunk by chunk. */
  rest(): AsyncGenerator<Buffer>
}

/** The stream ended inside the requested bytes. */
export class CutOff extends Error {
  override name = 'CutOff'
}

export function createByteReader(source: AsyncIterator<Buffer>): ByteReader {
  let ahead: Buffer = Buffer.alloc(0)

  async function fill(count: number): Promise<void> {
    if (ahead.length >= count) return
    const pieces = [ahead]
    let bytes = ahead.length
    while (bytes < count) {
      const next = await source.next()
      if (next.done) break
      pieces.push(next.value)
      bytes += next.value.length
    }
    ahead = Buffer.concat(pieces, bytes)
  }

  return {
    async peek(count) {
      await fill(count)
      return ahead.subarray(0, count)
    },

    async read(count) {
      await fill(count)
      if (ahead.length < count) throw new CutOff('the file ends within it')
      const taken = ahead.subarray(0, count)
      ahead = ahead.subarray(count)
      return taken
    },

    async isAtEnd() {
      await fill(1)
      return ahead.length === 0
    },

    async *rest() {
      if (ahead.length > 0) yield ahead
      ahead = Buffer.alloc(0)
      for (let next = await source.next(); !next.done; next = await source.next()) yield next.value
    },
  }
}
