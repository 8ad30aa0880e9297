/** Records of the portal's topics, for tests. */
import { type PortalEvent, versionIn } from '../../../contracts/events/portal-event.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { recordOf } from '../../../services/portal/own-events.ts'

const at = 1_790_000_000_000

/** An account in its first life; without an address it is deleted, in its second one. */
export function accountRecord(account_id: string, email: string): NewRecord {
  const version = Number(email === '' ? versionIn(2n, 0) : versionIn(1n, at))
  const times = { created_at: at, sessions_valid_from: at, changed_at: Date.now() }
  return recordOf({ type: 'account', data: { account_id, email, ...times, version } })
}

export function noticeEvent(notice_id: string): PortalEvent {
  const mail = { recipient: 'a@one.example', subject: 'A key was created', text: 'Text', attempts: 0 }
  const times = { created_at: at, sent_at: null, sender: null, changed_at: at }
  const data = {
    notice_id,
    rule: 'KEY_CREATED',
    status: 'WAITING',
    account_id: null,
    ...mail,
    ...times,
  } as const
  return { type: 'notice', data }
}
