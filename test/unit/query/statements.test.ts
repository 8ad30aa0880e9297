import { describe, expect, it } from 'vitest'
import {
  apiKeysStatement,
  changedKeysStatement,
  keyStateStatement,
  revokedKeysStatement,
} from '../../../services/query/auth/key-ring.ts'
import { projectsStatement } from '../../../services/query/campaigns/campaign-rows.ts'
import { detailByIdStatement, projectDetailStatement } from '../../../services/query/endpoints/project.ts'
import { statsStatement } from '../../../services/query/endpoints/stats.ts'
import { type ListQuery, snapshotStatement } from '../../../services/query/lists/list-statements.ts'
import { generationOf } from '../../../services/tables/generations.ts'

const databases = generationOf({ base: 'the_model', views: 'the_views' }, 1)
const everything: ListQuery = { status: null, category: null, sort: 'newest', updatedSince: null }

describe('the statement of a list', () => {
  it('has no condition for a query without filters', () => {
    const { query, query_params } = snapshotStatement(everything, databases, 1500)
    expect(query).not.toContain('WHERE')
    expect(query_params).toEqual({})
  })

  it('puts values from the client into typed placeholders, never into the text', () => {
    const category = "'; DROP TABLE campaigns; --"
    const query: ListQuery = { status: 'LIVE', category, sort: 'newest', updatedSince: 1234 }
    const statement = snapshotStatement(query, databases, 1500)
    expect(statement.query).not.toContain('DROP')
    expect(statement.query).toContain('status = {status:String}')
    expect(statement.query).toContain('category = {category:String}')
    expect(statement.query).toContain('updated_at >= fromUnixTimestamp64Milli({updated_since:Int64}')
    expect(statement.query_params).toEqual({ status: 'LIVE', category, updated_since: 1234 })
  })
})

describe('every statement', () => {
  const statements = {
    list: snapshotStatement(everything, databases, 1500),
    projects: projectsStatement(['a', 'b'], databases, 1500),
    detail: projectDetailStatement('slug', databases, 1500),
    detailById: detailByIdStatement('id', databases, 1500),
    stats: statsStatement(databases, 1500),
    keyState: keyStateStatement(databases, 1500),
    changedKeys: changedKeysStatement(7n, databases, 1500),
    keys: apiKeysStatement('a', 1000, databases, 1500),
    revoked: revokedKeysStatement(databases, 1500),
  }

  it.each(Object.entries(statements))(
    'reads the views, those of the model for pages and details, or the keys and the watermark: %s',
    (_, { query }) => {
      const read = [...query.matchAll(/\b(the_\w+\.\w+)/g)].map(match => match[1])
      expect(read.length).toBeGreaterThan(0)
      for (const name of read)
        expect(name).toMatch(
          /^(the_views\.\w+|the_model\.(api_keys|revoked_keys)|the_model_read_1\.(watermark|campaign_pages|campaign_by_slug))$/,
        )
    },
  )

  it.each(Object.entries(statements))(
    'bounds its own time, in whole seconds rounded up: %s',
    (_, { query }) => {
      expect(query).toMatch(/SETTINGS .*max_execution_time = 2$/)
    },
  )
})
