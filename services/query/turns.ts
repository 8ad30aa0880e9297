/**
 * Lets the event loop turn between the works of many that waited for one thing: their continuations would run one after
 * the other, and nothing else before the last of them.
 */
import { nextTurn } from '../shared/next-turn.ts'

/** Resolves in the order of the calls; after `msMax` of work, once the event loop has turned. `now`: ms. */
export function createTurns({ msMax, now }: { msMax: number; now: () => number }): () => Promise<void> {
  let last = Promise.resolve()
  let turnedAt = Number.NEGATIVE_INFINITY

  async function turnWhenDue(): Promise<void> {
    if (now() - turnedAt < msMax) return
    await nextTurn()
    turnedAt = now()
  }

  return () => {
    last = last.then(turnWhenDue)
    return last
  }
}
