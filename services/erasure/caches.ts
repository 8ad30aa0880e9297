/** What query processes keep of campaigns: answers, rows and lists, in memory or in Redis. */
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { purgeLookMs, writePurge } from '../tables/identity.ts'
import type { Shard } from '../tables/port.ts'
import { leftOver, type PurgedCopy, purged, unreached } from './report.ts'
import type { TablesPurge } from './tables.ts'

/**
 * Tells the query processes to forget what they keep, once everything is folded: they cannot read the same again. The ids of a
 * list stay until it expires, because the pages of a walk come from one snapshot.
 */
export async function purgeCaches(
  { tables, databases }: Shard,
  config: Config,
  { isDry, now, sleep }: TablesPurge,
): Promise<PurgedCopy> {
  const copy = 'cached answers'
  if (isDry) return purged(copy, 'tells the query processes to forget them')
  try {
    await writePurge(tables, databases, new Date(now()).toISOString())
  } catch (error) {
    return unreached(copy, messageOf(error))
  }
  await sleep(2 * purgeLookMs)
  const left = 'ids in lists of a moment ago; in Redis, answers that no process reads any more'
  return leftOver(
    copy,
    'forgotten by the query processes that can read these tables',
    left,
    now() + config.PLEDGEVIEW_CACHE_MS,
  )
}
