/** Changes of the portal's topics, for tests. */
import type { AccountEvent } from '../../contracts/events/portal-event.ts'
import type { StateChange } from '../../services/shared/event-log/state-topic.ts'

export function accountEvent(key: string, email = `${key}@one.example`): AccountEvent {
  const data = {
    account_id: key,
    email,
    created_at: 1_790_000_000_000,
    sessions_valid_from: 0,
    changed_at: 0,
  }
  return { type: 'account', data }
}

export function accountChange(key: string, email?: string): StateChange<'accounts'> {
  return { key, state: accountEvent(key, email) }
}

export function noticeChange(key: string): StateChange<'notices'> {
  const at = 1_790_000_000_000
  const mail = { recipient: 'a@one.example', subject: 'A key was created', text: 'Text', attempts: 0 }
  const times = { created_at: at, sent_at: null, sender: null, changed_at: at }
  const data = {
    notice_id: key,
    rule: 'KEY_CREATED',
    status: 'WAITING',
    account_id: null,
    ...mail,
    ...times,
  } as const
  return { key, state: { type: 'notice', data } }
}
