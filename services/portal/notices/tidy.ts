/**
 * Keeps the notices few, and free of addresses that are not needed.
 *
 * - A mail that waited for a day is given up, and so is one of an account that was deleted.
 * - A settled notice is removed after its time.
 */
import { blank, changeOf } from './deliver.ts'
import type { Notices } from './notices.ts'

export interface TidyDependencies {
  notices: Pick<Notices, 'untidy' | 'append' | 'remove'>
  /** Unix milliseconds. */
  now: () => number
}

const dayMs = 86_400_000
/** A mail that waits for longer is not sent. */
export const waitMsMax = dayMs
const changesMax = 5_000
const settledMsMax = 30 * dayMs
// An announcement may be resumed for long. The other ids do not come back.
const announcedMsMax = 400 * dayMs

/** At most `changesMax` changes; resolves with their number. */
export async function tidyNotices({ notices, now }: TidyDependencies): Promise<number> {
  const at = now()
  const since = {
    waits_since: at - waitMsMax,
    settled_since: at - settledMsMax,
    announced_since: at - announcedMsMax,
  }
  const untidy = await notices.untidy(since, changesMax)
  const over = untidy.filter(({ work }) => work === 'over')
  const gone = untidy.filter(({ work }) => work === 'gone')
  await notices.remove(over.map(({ notice_id }) => notice_id))
  await notices.append(
    gone.map(notice => changeOf({ ...notice, ...blank }, { status: 'GIVEN_UP', changed_at: at })),
  )
  return untidy.length
}
