/**
 * A property on real services tries fewer cases on a busy machine, which is no failure. A case that has begun is finished: fast-check's own
 * limit would leave it running beside the next test, in the same tables.
 */
export function whileTime<Values extends unknown[]>(
  msMax: number,
  predicate: (...values: Values) => Promise<void>,
): (...values: Values) => Promise<void> {
  const startedAt = performance.now()
  return async (...values) => {
    if (performance.now() - startedAt < msMax) await predicate(...values)
  }
}
