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

/** Opens and closes what the tests of the file need. The clock starts at the present and stands still. */
export function useQueryService() {
  let store: QueryTables
  let app: TestApp
  let valid: Credentials
  beforeAll(async () => {
    store = await openQueryTables()
  })
  afterAll(() => store?.close())
  beforeEach(async () => {
    const { tables, databases } = store
    app = await startTestApp({ tables, databases, keyLimit: 10_000, clock: testClock(Date.now()) })
    valid = app.issue()
  })
  afterEach(async () => {
    await app?.close()
    await store?.clear()
  })

  const service = {
    store: () => store,
    app: () => app,
    /** Sends a GET for a path below `/api/v1`. Fails unless the response has this status and keeps every promise. */
    async ask(
      path: string,
      status = 200,
      headers: Record<string, string> = {},
    ): Promise<AnyResponse & { json: AnyBody }> {
      const response = await readResponse(await app.get(path, valid, headers))
      expectEveryPromise(response)
      expect(response.status).toBe(status)
      return { ...response, json: response.body === '' ? undefined : JSON.parse(response.body) }
    },
    list: async (query = ''): Promise<ProjectListBody> => (await service.ask(`/projects${query}`)).json,
    idsOf: async (query = '') => (await service.list(query)).data.map(({ id }) => id),
  }
  return service
}
