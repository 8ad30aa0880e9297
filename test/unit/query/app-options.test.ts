import { describe, expect, it } from 'vitest'
import { defaultQueryAppOptions } from '../../../services/query/options.ts'
import { appOptionsOf } from '../../../services/query/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'

describe('the options of the API', () => {
  it('are the documented defaults without settings', () => {
    expect(appOptionsOf(readConfig({}), 'pepper')).toEqual({ ...defaultQueryAppOptions, pepper: 'pepper' })
  })

  it('have the time limit of statements that is set, and no connection is cut before it has passed', () => {
    const { statementMsMax, socketTimeoutMs } = appOptionsOf(
      readConfig({ PLEDGEVIEW_QUERY_MS_MAX: '60000' }),
      'pepper',
    )
    expect(statementMsMax).toBe(60_000)
    expect(socketTimeoutMs).toBeGreaterThan(2 * 60_000)
  })
})
