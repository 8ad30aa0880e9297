/** A consumer that keeps a copy of titles as the API allows it: by stamp, from the watermark of its last answer. */
import type { Databases, Tables } from '../../../services/tables/port.ts'

export interface Poller {
  /** Titles by campaign. A campaign that is no longer public stays. */
  readonly mirror: Map<string, string>
  /** Asks for what has changed since the watermark of the last answer. Like a list, it reads the watermark before the rows. */
  poll(): Promise<void>
  /** How many rows it has ever fetched. */
  fetched(): number
  /** What is shown now. */
  titles(): Promise<Map<string, string>>
  stamps(): Promise<Map<string, { title: string; at: number }>>
}

export function createPoller(tables: Pick<Tables, 'rows'>, { read, views }: Databases): Poller {
  const mirror = new Map<string, string>()
  let since = 0
  let fetched = 0

  const shownSince = (stamp: number) =>
    tables.rows<{ id: string; title: string; at: number }>({
      query: `SELECT campaign_id AS id, title, toUnixTimestamp64Milli(updated_at) AS at FROM ${views}.campaigns
              WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')`,
      query_params: { since: stamp },
    })

  return {
    mirror,
    async poll() {
      const [watermark] = await tables.rows<{ asOf: number }>({
        query: `SELECT toUnixTimestamp64Milli(reached) AS asOf FROM ${read}.watermark`,
      })
      const rows = await shownSince(since)
      for (const { id, title } of rows) mirror.set(id, title)
      fetched += rows.length
      since = watermark?.asOf ?? since
    },
    fetched: () => fetched,
    async titles() {
      return new Map((await shownSince(0)).map(({ id, title }) => [id, title]))
    },
    async stamps() {
      return new Map((await shownSince(0)).map(({ id, title, at }) => [id, { title, at }]))
    },
  }
}
