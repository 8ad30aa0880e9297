/** Finds keys whose program runs away, and notes a mail to the contact of each, at most one a day. */
import { keyPrefix, keyPrefixLength } from '../../api-keys/credentials.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import { readSql } from '../../tables/read-sql.ts'
import type { NoticeParts, Notices } from './notices.ts'
import { queueNotices } from './queue.ts'
import { runawayText } from './texts.ts'

const runawaySql = readSql('runaway', import.meta.url)
const minuteMs = 60_000
// A count is in the table some seconds after its minute.
const settledMs = minuteMs
const refusedMinutesMin = 8
const rowsMax = 100
// They travel in one parameter (tables/parameter-parts.ts). More would only be found again, and not be sent again.
const doneMax = 2_000
const readMsMax = 12_000

export interface RunawayRow {
  key: string
  name: string
  contact_email: string
  requests: number
  refused: number
}

/** Notes the mails of one look at the table; resolves with their number. */
export async function checkRunaways(parts: Omit<NoticeParts, 'mailer'>): Promise<number> {
  const { notices, portalUrl, now } = parts
  const at = now()
  const day = new Date(at).toISOString().slice(0, 10)
  const until = Math.floor((at - settledMs) / minuteMs) * minuteMs
  const rows = await findRunaways(parts, { until, done: await notedOn(notices, day) })
  return queueNotices(
    parts,
    rows.map(row => {
      const prefix = keyPrefix(row.key)
      return {
        ...runawayText({ ...row, keyPrefix: prefix, portalUrl }),
        notice_id: noticeId(prefix, day),
        rule: 'RUNAWAY_TRAFFIC',
        account_id: null,
        recipient: row.contact_email,
      }
    }),
  )
}

/** The keys whose programs run away, of the 15 minutes before `until` (Unix ms), without those with these prefixes. */
export function findRunaways(
  { tables, databases }: Pick<NoticeParts, 'tables' | 'databases'>,
  { until, done }: { until: number; done: readonly string[] },
): Promise<RunawayRow[]> {
  const statement = {
    query: nameDatabases(runawaySql, databases),
    query_params: {
      ...{ until, done: [...done], minutes_min: refusedMinutesMin },
      ...{ prefix_length: keyPrefixLength, rows_max: rowsMax },
    },
  }
  return tables.rows<RunawayRow>(statement, { signal: AbortSignal.timeout(readMsMax) })
}

/** The prefixes of the keys that have their notice of the day. */
async function notedOn(notices: Pick<Notices, 'endingWith'>, day: string): Promise<string[]> {
  const suffix = noticeId('', day)
  return (await notices.endingWith(suffix, doneMax)).map(id => id.slice(0, -suffix.length))
}

function noticeId(prefix: string, day: string): string {
  return `${prefix}.RUNAWAY_TRAFFIC.${day}`
}
