/** Finds keys whose program runs away, and notes a mail to the contact of each, at most one a day. */

import { keyPrefix, keyPrefixLength } from '../../shared/api-keys/credentials.ts'
import type { StateTopic } from '../../shared/event-log/state-topic.ts'
import { nameDatabases } from '../../shared/tables/migrate.ts'
import type { Databases, Tables } from '../../shared/tables/port.ts'
import { readSql } from '../../shared/tables/read-sql.ts'
import type { ContactOf, KeyContact } from './current-contact.ts'
import { type QueueDependencies, queueNotice } from './queue.ts'
import { runawayText } from './texts.ts'

export interface RunawayDependencies extends QueueDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  portalUrl: string
  contactOf: ContactOf
}

const runawaySql = readSql('runaway', import.meta.url)
const minuteMs = 60_000
// A count is in the table some seconds after its minute.
const settledMs = minuteMs
const refusedMinutesMin = 8
const rowsMax = 100
const doneMax = 10_000
const readMsMax = 12_000

export interface RunawayRow extends KeyContact {
  key: string
  name: string
  requests: number
  refused: number
}

/** Notes the mails of one look at the table; resolves with their number. */
export async function checkRunaways(dependencies: RunawayDependencies): Promise<number> {
  const { topic, portalUrl, now, contactOf } = dependencies
  const at = now()
  const day = new Date(at).toISOString().slice(0, 10)
  const until = Math.floor((at - settledMs) / minuteMs) * minuteMs
  const rows = await findRunaways(dependencies, { until, done: await notedOn(topic, day) })
  let noted = 0
  for (const row of rows) {
    const prefix = keyPrefix(row.key)
    const isNoted = await queueNotice(dependencies, {
      ...runawayText({ ...row, keyPrefix: prefix, portalUrl }),
      notice_id: noticeId(prefix, day),
      rule: 'RUNAWAY_TRAFFIC',
      account_id: null,
      recipient: await contactOf(row),
    })
    if (isNoted) noted++
  }
  return noted
}

/** The keys whose programs run away, of the 15 minutes before `until` (Unix ms), without those with these prefixes. */
export function findRunaways(
  { tables, databases }: Pick<RunawayDependencies, 'tables' | 'databases'>,
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
async function notedOn(topic: StateTopic<'notices'>, day: string): Promise<string[]> {
  const ids = (await topic.all()).map(({ state }) => state.data.notice_id)
  const suffix = noticeId('', day)
  return ids
    .filter(id => id.endsWith(suffix))
    .map(id => id.slice(0, -suffix.length))
    .slice(0, doneMax)
}

function noticeId(prefix: string, day: string): string {
  return `${prefix}.RUNAWAY_TRAFFIC.${day}`
}
