/** The answers that query processes keep, in Redis or in memory. */
import type { Config } from '../shared/config.ts'
import { leftOver, type PurgedCopy } from './report.ts'

/** Cached answers expire by themselves. The pages of one walk come from one snapshot, so they are not removed. */
export function cachesOf(config: Config, now: number): PurgedCopy {
  const msMax = Math.max(config.PLEDGEVIEW_CACHE_MS, config.PLEDGEVIEW_STATS_CACHE_MS)
  return leftOver('cached answers', 'nothing', 'answers of a moment ago', now + msMax)
}
