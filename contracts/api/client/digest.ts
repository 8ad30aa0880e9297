/** The digest of a copy, to compare it with `X-Data-Digest`. It needs Web Crypto: Node 20, or a page that came over HTTPS. */

// So many hashes are under way at once.
const atOnce = 1_000

/** `copy`: `updated_at` by id. */
export async function digestOf(copy: ReadonlyMap<string, string>): Promise<string> {
  let sum = 0n
  let waiting: Promise<bigint>[] = []
  const addAll = async () => {
    for (const number of await Promise.all(waiting)) sum = BigInt.asUintN(64, sum + number)
    waiting = []
  }
  for (const [id, updatedAt] of copy) {
    if (waiting.push(numberOf(`${id}|${updatedAt}`)) === atOnce) await addAll()
  }
  await addAll()
  return `${copy.size}-${sum.toString(16).padStart(16, '0')}`
}

/** The first eight bytes of the SHA-256. */
async function numberOf(text: string): Promise<bigint> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return new DataView(bytes).getBigUint64(0)
}
