import type { Sleep } from './sleep.ts'

const lookMs = 50

/** What `look` finds, once that is not undefined. Undefined if it finds nothing in so long. */
export async function untilFound<T>(
  msMax: number,
  look: () => Promise<T | undefined>,
  { monotonicMs, sleep }: { monotonicMs: () => number; sleep: Sleep },
): Promise<T | undefined> {
  const deadline = monotonicMs() + msMax
  for (;;) {
    const found = await look()
    if (found !== undefined || monotonicMs() > deadline) return found
    await sleep(lookMs)
  }
}
