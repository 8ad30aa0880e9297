/** The memory that a bench process holds. It needs Node's flag `--expose-gc`. */

/** Heap and array buffers after a whole garbage collection, in bytes. */
export async function heldBytes(): Promise<number> {
  if (!globalThis.gc) throw new Error('this process needs --expose-gc')
  await globalThis.gc({ type: 'major', execution: 'async' })
  await globalThis.gc({ type: 'major', execution: 'async' })
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
