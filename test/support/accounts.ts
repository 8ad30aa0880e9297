/** Changes of the topic `accounts`, for tests. */
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
