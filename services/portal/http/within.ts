/** The result of the work. Throws if it fails or takes longer; it may still end later. */
export async function within<R>(msMax: number, work: Promise<R>): Promise<R> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${msMax} ms`)), msMax)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
