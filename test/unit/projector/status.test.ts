import { describe, expect, it } from 'vitest'
import type { ProjectorService } from '../../../services/projector/service.ts'
import { reachedTables, statusOf } from '../../../services/projector/status.ts'
import { generationOf } from '../../../services/tables/generations.ts'
import { type Tables, TablesError } from '../../../services/tables/port.ts'

describe('the status of a projector', () => {
  it('has the lag and the reason while ClickHouse is away', async () => {
    const lag = [{ topic: 'pledges' as const, partition: 0, committed: 3, end: 10 }]
    const projector: Pick<ProjectorService, 'health' | 'lag'> = {
      health: () => ({ movedMsAgo: 1, stillMsMax: 10, failure: undefined, records: 3, rejects: 0 }),
      lag: async () => lag,
    }
    const tables = {
      rows: async () => {
        throw new TablesError('connect ECONNREFUSED 127.0.0.1:8123', { retryable: true })
      },
    } as Partial<Tables> as Tables
    const databases = generationOf({ base: 'model', views: 'views' }, 1)
    expect(await statusOf({ projector, tables, databases })).toEqual({
      projector: { state: 'running', failure: null, records: 3, rejects: 0, lag, warnings: [] },
      clickhouse: { ok: false, answers: false, detail: 'connect ECONNREFUSED 127.0.0.1:8123' },
      fold: null,
      tables: null,
      misplaced: null,
      producers: null,
      rejects: null,
      stopped: null,
      lag: null,
    })
  })

  it('tells tables that cannot be read from a ClickHouse that is away', async () => {
    const reached = await reachedTables(async () => {
      throw new TablesError('there is no table model.projector_log', {
        retryable: false,
        type: 'UNKNOWN_TABLE',
      })
    })
    expect(reached.clickhouse).toEqual({
      ok: false,
      answers: true,
      detail: 'there is no table model.projector_log',
    })
  })
})
