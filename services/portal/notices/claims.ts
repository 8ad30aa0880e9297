/**
 * Claims: which process may send a mail. A claim is a value in the store with the time at which it was made; of several processes
 * at once, one makes it. It is made before the mail is sent, and stays. So after a kill it shows that the mail may have been
 * sent: it is in doubt. Once the mail is settled, the claim says so until every process reads that in the ledger.
 */
import type { NoticeState } from '../../../contracts/events/portal-event.ts'
import type { PortalStore } from '../store/port.ts'
import { isSettled, type NoticeParts, type Notices } from './notices.ts'

export interface ClaimsParts extends Pick<NoticeParts, 'now'> {
  store: Pick<PortalStore, 'claim' | 'get' | 'put' | 'remove'>
  notices: Pick<Notices, 'get'>
}

export type Settled = 'SENT' | 'GIVEN_UP'

export type Claim =
  /**
   * Only this process may send the mail. `doubtful`: an older claim shows that it may have been sent before. `release`: it was
   * not sent, so any process may. `settle`: it is sent or given up, and that is in the log.
   */
  | {
      kind: 'mine'
      doubtful: boolean
      release: () => Promise<void>
      settle: (status: Settled) => Promise<void>
    }
  /** It was sent, or given up. */
  | { kind: 'settled'; status: Settled }
  /** Another process is sending it now. */
  | { kind: 'busy' }
  /** A process that no longer works on it may have sent it. */
  | { kind: 'doubtful' }

export type ClaimNotice = (
  notice: Pick<NoticeState, 'notice_id'>,
  options?: { takesDoubtful?: boolean },
) => Promise<Claim>

/** A claim that is older is in doubt: no process sends a mail for so long (deliver.ts). */
export const doubtfulMs = 120_000

// As long as an announcement may be resumed.
const heldMs = 400 * 86_400_000
// A projector that is away for longer than this may lead to a second mail.
const settledMs = 7 * 86_400_000

/** The name of a notice's claim in the store. */
export function claimName(noticeId: string): string {
  return `notice:${noticeId}`
}

export function createClaims({ store, notices, now }: ClaimsParts): ClaimNotice {
  return async ({ notice_id }, { takesDoubtful = false } = {}) => {
    const name = claimName(notice_id)

    /** `doubt`: the older claim that was taken. */
    async function mine(doubt?: string): Promise<Claim> {
      const settled = await notices.get(notice_id)
      if (settled && isSettled(settled)) {
        await store.put(name, settled.status, settledMs)
        return { kind: 'settled', status: settled.status as Settled }
      }
      return {
        kind: 'mine',
        doubtful: doubt !== undefined,
        async release() {
          if (doubt === undefined) return store.remove(name)
          await store.put(name, doubt, heldMs)
          await store.remove(`${name}:${doubt}`)
        },
        settle: status => store.put(name, status, settledMs),
      }
    }

    if (await store.claim(name, String(now()), heldMs)) return mine()
    const held = await store.get(name)
    if (held === 'SENT' || held === 'GIVEN_UP') return { kind: 'settled', status: held }
    // It was released at this moment.
    if (held === undefined || now() - Number(held) <= doubtfulMs) return { kind: 'busy' }
    const settled = await notices.get(notice_id)
    if (settled && isSettled(settled)) return { kind: 'settled', status: settled.status as Settled }
    if (!takesDoubtful) return { kind: 'doubtful' }
    // Of several processes that find the same old claim, one takes it.
    if (!(await store.claim(`${name}:${held}`, String(now()), heldMs))) return { kind: 'busy' }
    await store.put(name, String(now()), heldMs)
    return mine(held)
  }
}
