import type { Sleep } from './sleep.ts'

const lookMs = 50

/** Calls `look` until it returns a value, for at most `msMax`. Then returns undefined. */
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
