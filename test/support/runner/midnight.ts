/** Tests that must not see two days. What they test knows only UTC days. */
import { setTimeout as sleep } from 'node:timers/promises'

const dayMs = 86_400_000

/** Waits until the next UTC day if less than `msMin` of this one is left. */
export async function awayFromMidnight(msMin: number): Promise<void> {
  const left = dayMs - (Date.now() % dayMs)
  if (left < msMin) await sleep(left)
}
