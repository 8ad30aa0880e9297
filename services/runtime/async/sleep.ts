import { setTimeout } from 'node:timers/promises'

/**
 * Resolves after that many milliseconds, or as soon as the signal aborts. Loops take it as an argument, like the
 * clock.
 */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>

export const sleep: Sleep = async (ms, signal) => {
  await setTimeout(ms, undefined, signal && { signal }).catch(() => {})
}
