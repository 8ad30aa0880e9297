/**
 * Values that are usually there at once. A promise costs a turn of the microtask queue and several allocations, and the
 * path of a cached answer would have half a dozen of them.
 */

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>

/** Uses the value now if it is there, or as soon as its promise is fulfilled. */
export function use<T, Result>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}
