/** Purges what the last rebuild has left: the tables from before it. */
import { isWorking } from '../generations/rebuild-log.ts'
import type { Rebuilds } from '../generations/rebuilds.ts'
import { messageOf } from '../runtime/message-of.ts'
import { type PurgedCopy, purged, unreached } from './report.ts'

const copy = 'previous tables'

/** Never throws. The previous tables are dropped, so there is no rollback afterwards. */
export async function purgeRebuilds(
  rebuilds: Pick<Rebuilds, 'report' | 'drop'>,
  isDry: boolean,
): Promise<PurgedCopy> {
  try {
    const latest = await rebuilds.report()
    if (latest && isWorking(latest)) {
      const reason =
        'a rebuild is not finished: let it end or drop it (pledgeview rebuild drop), then run the purge again'
      return unreached(copy, reason)
    }
    if (!latest?.isPreviousKept) return purged(copy, 'none are kept')
    if (isDry) return purged(copy, 'drops them: no rollback after that')
    await rebuilds.drop()
    return purged(copy, 'dropped: no rollback any more')
  } catch (error) {
    return unreached(copy, messageOf(error))
  }
}
