/**
 * The notices: events of the topic `notices`, and the ledger that the projector writes from them. A notice waits with its mail
 * until it is settled: sent, or given up. It then keeps no address and no text, and events that arrive late do not reopen it.
 */
import type { NoticeRule, NoticeState } from '../../../contracts/events/portal-event.ts'
import type { EventWriter } from '../../log/port.ts'
import { readSql } from '../../tables/sql-text.ts'
import { recordOf } from '../own-events.ts'
import { type Place, readRows } from '../reading.ts'
import type { MailText } from './texts.ts'

export interface NewNotice extends MailText {
  /** Made of the key, the rule and, if it can come again, the day. */
  notice_id: string
  rule: NoticeRule
  account_id: string | null
  recipient: string
}

export interface WaitingNotice extends Omit<NewNotice, keyof NoticeMail> {
  created_at: number
  /** It has waited for too long, or its account is deleted. */
  is_over: boolean
}

/** What is sent, and to whom. */
export type NoticeMail = Pick<NewNotice, 'recipient' | 'subject' | 'text'>

export type Notices = ReturnType<typeof openNotices>

const waitingSql = readSql('waiting', import.meta.url)
const settledSql = readSql('settled', import.meta.url)
const mailSql = `SELECT recipient, subject, text FROM \${base}.notice_ledger FINAL
WHERE notice_id = {notice_id:String} AND status = 'WAITING'`
const rowsMax = 2_000

export function openNotices({ writer, ...place }: Place & { writer: Pick<EventWriter, 'append'> }) {
  const read = <Row>(sql: string, since: number) => readRows<Row>(place, sql, { since, rows_max: rowsMax })
  const append = (states: readonly NoticeState[]) =>
    writer.append(states.map(data => recordOf({ type: 'notice', data })))

  return {
    /** Resolves when they are durable; the ledger has them a moment later. */
    add: (notices: readonly NewNotice[], at: number) =>
      append(notices.map(notice => ({ ...blank, ...notice, created_at: at, changed_at: at }))),

    /** The oldest first. What was created before `since` (Unix ms) is over. */
    waiting: (since: number) => read<WaitingNotice>(waitingSql, since),

    /** The mail of a notice that waits. A text may have 32 KB, so only what is sent now is read. */
    async mailOf({ notice_id }: WaitingNotice): Promise<NoticeMail | undefined> {
      const [mail] = await readRows<NoticeMail>(place, mailSql, { notice_id })
      return mail
    },

    settle: (
      { notice_id, rule, account_id, created_at }: WaitingNotice,
      status: 'SENT' | 'GIVEN_UP',
      at: number,
    ) => {
      const sent_at = status === 'SENT' ? at : null
      const settled = { ...blank, notice_id, rule, account_id, created_at }
      return append([{ ...settled, status, sent_at, changed_at: at }])
    },

    /** Removes what was settled before `since` (Unix ms). */
    async removeSettled(since: number): Promise<void> {
      const rows = await read<{ notice_id: string }>(settledSql, since)
      await writer.append(
        rows.map(({ notice_id }) => ({ topic: 'notices', key: Buffer.from(notice_id), value: null })),
      )
    },
  }
}

const blank = {
  status: 'WAITING',
  recipient: '',
  subject: '',
  text: '',
  sent_at: null,
} as const
