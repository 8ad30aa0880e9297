/**
 * What an iteration has handed out lately, so that a campaign that comes again as it was is not handed out again.
 *
 * It remembers the present walk and the one before, which is as far as the inclusive bound of `updated_since` reaches
 * back, and of each the last 10,000 campaigns. What is forgotten is only handed out once more. It compares what a list
 * shows, but for `days_remaining`, which the clock changes and not the campaign.
 */
import type { Project } from '../schemas.ts'

export interface Reported {
  /** Whether the campaign is not known as it is now; from then on it is. */
  isNews(project: Project): boolean
  forgetAll(): void
  endWalk(): void
}

const campaignsMax = 10_000

/** `acrossWalks`: whether to remember anything beyond the end of a walk. */
export function createReported(acrossWalks: boolean): Reported {
  let before = new Map<string, string>()
  let present = new Map<string, string>()

  return {
    isNews(project) {
      const { id } = project
      const content = JSON.stringify({ ...project, days_remaining: 0 })
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
      before = acrossWalks ? present : new Map()
      present = new Map()
    },
  }
}
