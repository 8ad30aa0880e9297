/**
 * Remembers what an iteration has yielded lately, so that an unchanged campaign is not yielded again.
 *
 * It remembers the present walk and the one before, because the inclusive bound of `updated_since` reaches back no
 * further, and of each walk the last 10,000 campaigns. A forgotten campaign is only yielded once more.
 *
 * It compares `updated_at`, which changes with everything that readers can see of a campaign, except `days_remaining`: that changes with
 * the clock. The `updated_at` of a removal is never one that the campaign had.
 */

export interface Reported {
  /** Whether the campaign, or its removal, differs from the remembered state. It then remembers the new one. */
  isNews(state: { id: string; updated_at: string }): boolean
  forgetAll(): void
  endWalk(): void
}

const campaignsMax = 10_000

export function createReported(): Reported {
  let before = new Map<string, string>()
  let present = new Map<string, string>()

  return {
    isNews({ id, updated_at }) {
      const known = present.get(id) ?? before.get(id)
      present.delete(id)
      present.set(id, updated_at)
      const [oldest] = present.keys()
      if (present.size > campaignsMax && oldest !== undefined) present.delete(oldest)
      return updated_at !== known
    },
    forgetAll() {
      before = new Map()
      present = new Map()
    },
    endWalk() {
      before = present
      present = new Map()
    },
  }
}
