/**
 * The looks of a group's owner for what it lacks (`FindBehind`). Such a look may read a month of its records, and each rebalance needs
 * one. So only one runs at a time, and what one has found counts for the next, for a while, where the group has not moved.
 *
 * A remembered answer may be older than what the owner has by now. Then it reads records again that it has, which changes nothing.
 */
import type { Behind, FindBehind } from './offsets.ts'

export interface Looks {
  find: FindBehind
  /** Whether one runs at this moment. */
  isUnderWay(): boolean
}

interface Answer {
  committed: number
  behind: Behind | undefined
  /** Monotonic ms. */
  at: number
}

// The projectors of a deployment start, and their group settles, in less.
const rememberedMsMax = 300_000

export function createLooks(findBehind: FindBehind, monotonicMs: () => number): Looks {
  /** By `partitionName`, so there is at most one for each partition. */
  const answers = new Map<string, Answer>()
  let hasAsked = false
  let underWay = 0
  let last: Promise<unknown> = Promise.resolve()

  function isKnown(place: string, committed: number): boolean {
    const answer = answers.get(place)
    return answer?.committed === committed && monotonicMs() - answer.at <= rememberedMsMax
  }

  const look: FindBehind = async (committed, all) => {
    const asked = new Map([...committed].filter(([place, next]) => !isKnown(place, next)))
    // The owner is asked at least once, also if the group has committed nothing.
    if (!hasAsked || asked.size > 0) {
      const found = await findBehind(asked, all)
      hasAsked = true
      const at = monotonicMs()
      for (const [place, next] of asked) answers.set(place, { committed: next, behind: found.get(place), at })
    }
    return new Map(
      [...committed.keys()].flatMap(place => {
        const behind = answers.get(place)?.behind
        return behind ? [[place, behind] as const] : []
      }),
    )
  }

  return {
    isUnderWay: () => underWay > 0,
    async find(committed, all) {
      underWay++
      const own = last.then(() => look(committed, all))
      // If it fails, the next one asks itself.
      last = own.catch(() => undefined)
      try {
        return await own
      } finally {
        underWay--
      }
    },
  }
}
