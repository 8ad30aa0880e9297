/**
 * Keeps the topic `notices` small, and free of addresses that are not needed.
 *
 * - A mail that waited for a day is given up, and so is one of an account that was deleted.
 * - A claim is removed 10 minutes after its notice was settled: no process still reads what was before that.
 * - A settled notice is removed after its time, and an announcement's claim that is still in doubt too.
 */
import type { NoticeState } from '../../../contracts/events/portal-event.ts'
import type { KeyedState, StateChange, StateTopic } from '../../shared/event-log/state-topic.ts'
import { isSettled } from './claims.ts'
import { blank, changeOf } from './deliver.ts'

export interface TidyDependencies {
  topic: StateTopic<'notices'>
  /** Whether an account exists. */
  hasAccount: (accountId: string) => Promise<boolean>
  /** Unix milliseconds. */
  now: () => number
}

const dayMs = 86_400_000
const settledMs = 600_000
const waitMsMax = dayMs
const changesMax = 5_000

/** At most `changesMax` changes; resolves with their number. */
export async function tidyNotices({ topic, hasAccount, now }: TidyDependencies): Promise<number> {
  await topic.refresh()
  const records = await topic.all()
  const notices = new Map(records.map(({ key, state }) => [key, state.data]))
  const changes: StateChange<'notices'>[] = []
  for (const record of records) {
    if (changes.length >= changesMax) break
    const change = await changed(record, notices, hasAccount, now())
    if (change) changes.push(change)
  }
  if (changes.length > 0) await topic.write(changes)
  return changes.length
}

async function changed(
  { key, state: { data } }: KeyedState<'notices'>,
  notices: ReadonlyMap<string, NoticeState>,
  hasAccount: TidyDependencies['hasAccount'],
  now: number,
): Promise<StateChange<'notices'> | undefined> {
  const age = now - data.changed_at
  if (data.sender !== null) {
    const notice = notices.get(data.notice_id)
    const isOver = notice && isSettled(notice) && now - notice.changed_at > settledMs
    return isOver || age > keptMs(data) ? { key, state: null } : undefined
  }
  if (isSettled(data)) return age > keptMs(data) ? { key, state: null } : undefined
  const isGone =
    now - data.created_at > waitMsMax || (data.account_id !== null && !(await hasAccount(data.account_id)))
  return isGone ? changeOf(data, { ...blank, status: 'GIVEN_UP', changed_at: now }) : undefined
}

/** An announcement may be resumed for long. The other ids do not come back. */
function keptMs({ rule }: NoticeState): number {
  return rule === 'ANNOUNCEMENT' ? 400 * dayMs : 30 * dayMs
}
