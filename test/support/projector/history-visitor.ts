/**
 * A visitor who writes the history down by hand, and what the views of the history have to say if they agree with the notes.
 *
 * The visitor looks at all campaigns after every statement that may have changed one. Each look notes every public campaign
 * under the UTC day of its stamp, over an earlier note of that day, and each one that is gone under the day of its departure.
 */

import type { Databases, Tables } from '../../../services/tables/port.ts'
import { obstructed, type TablesCall } from '../clickhouse/faulty-tables.ts'
import { isPromotion } from '../generations/rebuilds.ts'

/** A campaign at the end of a day. Amounts are ten-thousandths of a major unit. `null`: no longer public. */
export interface Noted {
  status: string
  category: string
  pledged: bigint
  platform: bigint
  backers: number
  pledges: number
  followers: number
  /** Day number of the launch; `null`: none. */
  launchDay: number | null
}

/** By campaign, by day (days since 1970). */
export type Notes = Map<string, Map<number, Noted | null>>

interface Row extends Omit<Noted, 'pledged' | 'platform'> {
  id: string
  day: number
  pledged: string
  platform: string
}

/** Tables that show a visitor everything. `look` may be called at any time. */
export function withVisitor(tables: Tables, databases: () => Databases): { tables: Tables; notes: Notes } {
  const notes: Notes = new Map()
  const note = (id: string, day: number, what: Noted | null) => {
    const own = notes.get(id) ?? new Map<number, Noted | null>()
    own.set(day, what)
    notes.set(id, own)
  }
  let present = new Set<string>()

  async function look(): Promise<void> {
    const rows = await tables.rows<Row>({ query: lookStatement(databases()) })
    for (const { id, day, ...row } of rows) {
      note(id, day, { ...row, pledged: BigInt(row.pledged), platform: BigInt(row.platform) })
    }
    const now = new Set(rows.map(({ id }) => id))
    const gone = [...present].filter(id => !now.has(id))
    present = now
    if (gone.length === 0) return
    const departures = await tables.rows<{ id: string; day: number }>({
      query: `SELECT campaign_id AS id, toInt32(toDate(max(updated_at))) AS day FROM ${databases().read}.campaign_changes
              WHERE campaign_id IN {gone:Array(String)} GROUP BY id`,
      query_params: { gone },
    })
    for (const { id, day } of departures) note(id, day, null)
  }

  const isChange = ({ kind, text }: TablesCall) =>
    kind === 'run' && (text.includes(`INSERT INTO ${databases().read}.campaigns `) || isPromotion(text))
  const after = async (call: TablesCall) => {
    if (isChange(call)) await look()
  }
  return { tables: obstructed(tables, { after }), notes }
}

function lookStatement({ read }: Databases): string {
  return `SELECT campaign_id AS id, toInt32(toDate(updated_at)) AS day, status, category,
            toString(toInt128(pledged_amount * 10000)) AS pledged,
            toString(toInt128(pledged_platform_amount * 10000)) AS platform, backer_count AS backers, pledge_count AS pledges,
            follower_count AS followers, toInt32(toDate(launch_date)) AS launchDay
          FROM ${read}.campaigns FINAL`
}

/** The rows of campaign_days. */
export function expectedDays(notes: Notes): object[] {
  return [...publicNow(notes)].flatMap(([id, days]) => {
    let before: Noted | null | undefined
    // A campaign that is shown again begins anew.
    let complete = Number.POSITIVE_INFINITY
    const launch = days.at(-1)?.[1]?.launchDay ?? null
    return days.flatMap(([day, noted]) => {
      const isLaunched = noted?.launchDay != null && noted.launchDay >= day - 1
      complete =
        noted === null
          ? Number.POSITIVE_INFINITY
          : Math.min(complete, day, isLaunched ? (noted.launchDay ?? day) : day)
      const isNew = before === undefined && isLaunched
      const from = before ?? (isNew ? { platform: 0n, backers: 0, pledges: 0 } : noted)
      const isOpening = !before && !isNew
      if (noted !== null || before !== undefined) before = noted
      if (noted === null || from === null) return []
      const { launchDay: _, ...shown } = noted
      return {
        id,
        day,
        ...shown,
        pledged: String(noted.pledged),
        platform: String(noted.platform),
        new: String(noted.platform - from.platform),
        newBackers: noted.backers - from.backers,
        newPledges: noted.pledges - from.pledges,
        opening: String(isOpening ? noted.platform : 0n),
        launch,
        complete,
      }
    })
  })
}

/** What a day added to a category, or to the platform (`''`). */
const noMove = { new: 0n, pledges: 0, opening: 0n, departed: 0n, campaigns: 0 }
type Move = typeof noMove

/** The moves of each day. Their order is that of the days. */
function movesOf(notes: Notes, by: 'category' | 'platform'): Map<string, Map<number, Move>> {
  const moves = new Map<string, Map<number, Move>>()
  const add = (category: string, day: number, change: Partial<Move>) => {
    const name = by === 'category' ? category : ''
    const own = moves.get(name) ?? new Map<number, Move>()
    const move = own.get(day) ?? noMove
    const more = { ...noMove, ...change }
    own.set(day, {
      new: move.new + more.new,
      pledges: move.pledges + more.pledges,
      opening: move.opening + more.opening,
      departed: move.departed + more.departed,
      campaigns: move.campaigns + more.campaigns,
    })
    moves.set(name, own)
  }
  for (const [, days] of sorted(notes)) {
    let before: Noted | null | undefined
    for (const [day, noted] of days) {
      if (noted === null) {
        if (before) add(before.category, day, { departed: before.platform, campaigns: -1 })
      } else if (before) {
        add(noted.category, day, {
          new: noted.platform - before.platform,
          pledges: noted.pledges - before.pledges,
        })
        if (by === 'category' && before.category !== noted.category) {
          add(noted.category, day, { opening: before.platform, campaigns: 1 })
          add(before.category, day, { departed: before.platform, campaigns: -1 })
        }
      } else if (before === undefined && noted.launchDay !== null && noted.launchDay >= day - 1) {
        add(noted.category, day, { new: noted.platform, pledges: noted.pledges, campaigns: 1 })
      } else {
        add(noted.category, day, { opening: noted.platform, campaigns: 1 })
      }
      // A campaign that came and went on one day was never there at the end of a day.
      if (noted !== null || before !== undefined) before = noted
    }
  }
  return moves
}

/** The rows of category_funding_days or funding_days until `today`, without gaps. */
export function expectedFunding(notes: Notes, by: 'category' | 'platform', today: number): object[] {
  return [...movesOf(notes, by)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([category, days]) => {
      const first = Math.min(...days.keys())
      const last = Math.max(today, ...days.keys())
      let standing = 0n
      let campaigns = 0
      return Array.from({ length: last - first + 1 }, (_, n) => {
        const move = days.get(first + n) ?? noMove
        standing += move.new + move.opening - move.departed
        campaigns += move.campaigns
        return {
          ...(by === 'category' && { category }),
          day: first + n,
          new: String(move.new),
          pledges: move.pledges,
          opening: String(move.opening),
          departed: String(move.departed),
          standing: String(standing),
          campaigns,
        }
      })
    })
}

type Days = [day: number, noted: Noted | null][]

/** By id, and by day. */
function sorted(notes: Notes): [string, Days][] {
  return [...notes]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, days]) => [id, [...days].toSorted(([a], [b]) => a - b)])
}

function publicNow(notes: Notes): [string, Days][] {
  return sorted(notes).filter(([, days]) => days.at(-1)?.[1] !== null)
}
