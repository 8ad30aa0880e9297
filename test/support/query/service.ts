/** The query service over the read tables of a real ClickHouse: a new app per test, one store per file. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import type { ErrorBody } from '../../../contracts/api/errors.ts'
import type { Project, ProjectDetail } from '../../../contracts/api/schemas.ts'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import type { ProjectListBody } from '../../../services/query/endpoints/projects.ts'
import type { Stats } from '../../../services/query/endpoints/stats.ts'
import { startTestApp, type TestApp, testClock } from './app.ts'
import { type AnyResponse, expectEveryPromise, readResponse } from './shape.ts'
import { openQueryTables, type QueryTables } from './tables.ts'

/** Any body of the API. A test reads the fields that its path and status promise. */
export interface AnyBody extends ErrorBody {
  data: Project[] & ProjectDetail & Stats
  pagination: ProjectListBody['pagination']
}

export interface QueryService {
  store(): QueryTables
  app(): TestApp
  /** Sends a GET for a path below `/api/v1`. Fails unless the response has this status and keeps every promise. */
  ask(
    path: string,
    status?: number,
    headers?: Record<string, string>,
  ): Promise<AnyResponse & { json: AnyBody }>
  list(query?: string): Promise<ProjectListBody>
  idsOf(query?: string): Promise<string[]>
}

/** Opens and closes what the tests of the file need. The clock starts at the present and stands still. */
export function useQueryService(): QueryService {
  let store: QueryTables | undefined
  let app: TestApp | undefined
  let valid: Credentials | undefined
  beforeAll(async () => {
    store = await openQueryTables()
  })
  afterAll(() => store?.close())
  beforeEach(async () => {
    const { tables, databases } = opened(store)
    app = await startTestApp({ tables, databases, keyLimit: 10_000, clock: testClock(Date.now()) })
    valid = app.issue()
  })
  afterEach(async () => {
    await app?.close()
    await store?.clear()
  })

  const service: QueryService = {
    store: () => opened(store),
    app: () => opened(app),
    async ask(path, status = 200, headers = {}) {
      const response = await readResponse(await opened(app).get(path, valid, headers))
      expectEveryPromise(response)
      expect(response.status).toBe(status)
      return { ...response, json: response.body === '' ? undefined : JSON.parse(response.body) }
    },
    list: async (query = '') => (await service.ask(`/projects${query}`)).json,
    idsOf: async (query = '') => (await service.list(query)).data.map(({ id }) => id),
  }
  return service
}

function opened<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('only within a test')
  return value
}
