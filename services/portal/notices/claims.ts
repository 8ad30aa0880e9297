/**
 * Claims: which process may send a mail. Any number of processes try at once, on a topic where the last record of a key counts, so
 * each claim is a record of its own, `notice_id/sender`.
 *
 * A process writes its claim, then reads all claims of the notice. If there is another one, it withdraws its own. Of two processes,
 * the one whose claim is later in the log sees the claim of the other. So at most one keeps its claim. If both see each other,
 * both withdraw, and try again after a random pause.
 *
 * A claim is durable before its mail is sent, and stays. So after a kill it shows that the mail may have been sent: it is in doubt.
 */
import type { NoticeEvent, NoticeState } from '../../../contracts/events/portal-event.ts'
import type { KeyedState, StateTopic } from '../../shared/event-log/state-topic.ts'
import type { Sleep } from '../../shared/sleep.ts'

export interface ClaimsDependencies {
  topic: StateTopic<'notices'>
  /** Names this run of this process; no other run has the same name. */
  sender: string
  /** Unix milliseconds. */
  now: () => number
  /** 0 to 1. */
  random: () => number
  sleep: Sleep
}

export type Claim =
  /** Only this process may send the mail. `doubtful`: an older claim shows that it may have been sent before. */
  | { kind: 'mine'; doubtful: boolean; release: () => Promise<void> }
  /** It was sent, or given up. */
  | { kind: 'settled' }
  /** Another process is sending it now. */
  | { kind: 'busy' }
  /** A process that no longer works on it may have sent it. */
  | { kind: 'doubtful' }

export type ClaimNotice = (
  notice: Pick<NoticeState, 'notice_id' | 'rule' | 'account_id'>,
  options?: { takesDoubtful?: boolean },
) => Promise<Claim>

/** A claim that is older is in doubt: no process sends a mail for so long (deliver.ts). */
export const doubtfulMs = 120_000

const triesMax = 5
const pauseMsMax = 300

export function createClaims({ topic, sender, now, random, sleep }: ClaimsDependencies): ClaimNotice {
  let claimed = 0

  return async (notice, { takesDoubtful = false } = {}) => {
    for (let tries = 1; tries <= triesMax; tries++) {
      await topic.refresh()
      const before = stateOf(await topic.group(notice.notice_id), now())
      if (before.isSettled) return { kind: 'settled' }
      if (before.isBusy) return { kind: 'busy' }
      if (before.isDoubtful && !takesDoubtful) return { kind: 'doubtful' }

      claimed++
      // A name that was never used: a claim of before must stay visible.
      const state = claimState(notice, `${sender}.${claimed}`, now())
      const key = `${notice.notice_id}/${state.sender}`
      await topic.write([{ key, state: { type: 'notice', data: state } }])
      const release = () => topic.write([{ key, state: null }])
      // The write has read the topic up to its end.
      const others = (await topic.group(notice.notice_id)).filter(other => other.key !== key)
      const after = stateOf(others, now())
      if (!after.isSettled && !after.isBusy) return { kind: 'mine', doubtful: after.isDoubtful, release }
      await release()
      if (after.isSettled) return { kind: 'settled' }
      await sleep(random() * pauseMsMax * tries)
    }
    return { kind: 'busy' }
  }
}

/** Whether a notice is done: no process sends it any more. */
export function isSettled({ status, sender }: NoticeState): boolean {
  return sender === null && (status === 'SENT' || status === 'GIVEN_UP')
}

function stateOf(records: readonly KeyedState<'notices'>[], now: number) {
  const states = records.map(({ state }) => state.data)
  const claims = states.filter(({ sender }) => sender !== null)
  const isOld = ({ changed_at }: NoticeState) => changed_at < now - doubtfulMs
  return {
    isSettled: states.some(isSettled),
    isBusy: claims.some(claim => !isOld(claim)),
    isDoubtful: claims.some(isOld),
  }
}

function claimState(
  { notice_id, rule, account_id }: Pick<NoticeState, 'notice_id' | 'rule' | 'account_id'>,
  sender: string,
  now: number,
): NoticeEvent['data'] {
  return {
    ...{ notice_id, rule, account_id, sender },
    status: 'SENDING',
    ...{ recipient: '', subject: '', text: '' },
    attempts: 0,
    ...{ created_at: now, changed_at: now, sent_at: null },
  }
}
