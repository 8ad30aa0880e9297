import { setImmediate } from 'node:timers/promises'

/** Lets waiting I/O run before the caller goes on. */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate()
}
