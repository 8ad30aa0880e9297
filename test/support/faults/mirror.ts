/** A consumer as the API's documentation describes it: a copy of the public campaigns, updated by polling `updated_since`. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Project } from '../../../contracts/api/schemas.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { projectListBodySchema } from '../../../services/query/endpoints/projects.ts'
import { keyHeaders } from '../query/app.ts'
import { type ApiClient, type Asked, snapshotOf } from './api-client.ts'
import type { Judge } from './judge.ts'

export interface Mirror {
  stop(): Promise<void>
  /** Walks once more, to the end. */
  catchUp(): Promise<void>
  /** The campaigns by id, as they were seen last. */
  campaigns(): ReadonlyMap<string, Project>
  walks(): number
}

const pauseMs = 700
const limit = 100

export function startMirror({
  apiUrls,
  client,
  judge,
  keys,
}: {
  apiUrls: readonly string[]
  client: ApiClient
  judge: Judge
  keys: readonly Credentials[]
}): Mirror {
  const campaigns = new Map<string, Project>()
  const stopping = new AbortController()
  let cursor: string | undefined
  let requests = 0
  let walks = 0
  const running = run()

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await walk().catch(error => client.report(String(error)))
      await delay(pauseMs)
    }
  }

  /** If a page is refused, or the snapshot ends between two pages, the next walk begins at the same point. */
  async function walk(): Promise<boolean> {
    // As behind a load balancer: any process may answer any page.
    const next = <T>(list: readonly T[]) => list[requests % list.length] as T
    let first: Asked | undefined
    for (let offset = 0; ; offset += limit) {
      const query = new URLSearchParams({
        limit: String(limit),
        offset: String(offset),
        ...(cursor && { updated_since: cursor }),
      })
      requests++
      const url = `${next(apiUrls)}/projects?${query}`
      const asked = await client.ask(url, [200], { headers: keyHeaders(next(keys)) })
      if (asked?.response.status !== 200) return false
      first ??= asked
      const asOf = first.response.headers['x-data-as-of']
      if (asOf === undefined || snapshotOf(asked) !== snapshotOf(first)) return false
      const { data, pagination } = projectListBodySchema.parse(asked.body)
      for (const project of data) {
        client.report(judge.shown(project, asked.moment))
        campaigns.set(project.id, project)
      }
      if (pagination.has_more) continue
      cursor = asOf
      walks++
      return true
    }
  }

  return {
    async stop() {
      stopping.abort()
      await running
    },
    async catchUp() {
      while (!(await walk())) await delay(pauseMs)
    },
    campaigns: () => campaigns,
    walks: () => walks,
  }
}
