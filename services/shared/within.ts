/** The result of the work. Throws if it fails or takes longer; it may still end later. `late`: the error if it takes longer. */
export async function within<R>(
  msMax: number,
  work: Promise<R>,
  late = () => new Error(`no answer within ${msMax} ms`),
): Promise<R> {
  const { promise: timedOut, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), msMax)
  try {
    return await Promise.race([work, timedOut])
  } finally {
    clearTimeout(timer)
  }
}
