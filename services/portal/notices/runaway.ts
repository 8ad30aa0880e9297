/** Finds keys whose program runs away, and notes a mail to the contact of each, at most one a day. */
import { keyPrefix, keyPrefixLength } from '../../api-keys/credentials.ts'
import { readSql } from '../../tables/read-sql.ts'
import { type Place, readRows } from '../reading.ts'
import { type NoteParts, noteMails } from './key-notices.ts'
import { runawayText } from './texts.ts'

const runawaySql = readSql('runaway', import.meta.url)
const minuteMs = 60_000
// A count is in the table some seconds after its minute.
const settledMs = minuteMs
const refusedMinutesMin = 8
const rowsMax = 100
const readMsMax = 12_000

interface RunawayRow {
  key: string
  name: string
  contact_email: string
  requests: number
  refused: number
}

/** Notes the mails of one look at the table; resolves with their number. */
export async function checkRunaways(parts: NoteParts & Place): Promise<number> {
  const { portalUrl, now } = parts
  const suffix = `.RUNAWAY_TRAFFIC.${new Date(now()).toISOString().slice(0, 10)}`
  const rows = await findRunaways(parts, now(), suffix)
  return noteMails(
    parts,
    rows.map(row => ({
      ...runawayText({ ...row, keyPrefix: keyPrefix(row.key), portalUrl }),
      notice_id: `${keyPrefix(row.key)}${suffix}`,
      rule: 'RUNAWAY_TRAFFIC',
      account_id: null,
      recipient: row.contact_email,
    })),
  )
}

/** The keys whose programs run away now (Unix ms), without those that have a notice with this end of its id. */
export function findRunaways(place: Place, now: number, suffix: string): Promise<RunawayRow[]> {
  const until = Math.floor((now - settledMs) / minuteMs) * minuteMs
  const bounds = { minutes_min: refusedMinutesMin, prefix_length: keyPrefixLength, rows_max: rowsMax }
  return readRows(place, runawaySql, readMsMax, { until, suffix, ...bounds })
}
