/**
 * The result of the work. Throws if it fails or takes longer; it may still end later. `late`: the error if it takes longer.
 *
 * If this process was busy, the timer and the answer are due together, and the timer runs first. setImmediate lets the answer be
 * read before the rejection.
 */
export async function within<R>(
  msMax: number,
  work: Promise<R>,
  late = () => new Error(`no answer within ${msMax} ms`),
): Promise<R> {
  const { promise: timedOut, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => reject(late())), msMax)
  try {
    return await Promise.race([work, timedOut])
  } finally {
    clearTimeout(timer)
  }
}
