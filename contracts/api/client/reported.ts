/**
 * Remembers what an iteration has yielded lately, so that an unchanged campaign is not yielded again.
 *
 * It remembers the present walk and the one before, because the inclusive bound of `updated_since` reaches back no
 * further, and of each walk the last 10,000 campaigns. A forgotten campaign is only yielded once more. It compares the
 * list fields except `days_remaining`, which changes with the clock. A change that only the detail shows has another
 * `updated_at` in the list.
 */
import type { Project, Removal } from './bodies.ts'

export interface Reported {
  /** Whether the campaign, or its removal, differs from the remembered state. It then remembers the new one. */
  isNews(state: Project | Removal): boolean
  forgetAll(): void
  endWalk(): void
}

const campaignsMax = 10_000

export function createReported(): Reported {
  let before = new Map<string, string>()
  let present = new Map<string, string>()

  return {
    isNews(state) {
      const { id } = state
      const content = JSON.stringify({ ...state, days_remaining: 0 })
      const known = present.get(id) ?? before.get(id)
      present.delete(id)
      present.set(id, content)
      const [oldest] = present.keys()
      if (present.size > campaignsMax && oldest !== undefined) present.delete(oldest)
      return content !== known
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
