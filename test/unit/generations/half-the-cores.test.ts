/** A rebuild leaves cores of ClickHouse to the API. */
import { expect, test } from 'vitest'
import { onHalfTheCores } from '../../../services/generations/build/half-the-cores.ts'
import type { CallOptions, Tables } from '../../../services/tables/port.ts'

test.each([
  { cores: 1, threadsMax: 1 },
  { cores: 2, threadsMax: 1 },
  { cores: 5, threadsMax: 2 },
  { cores: 64, threadsMax: 32 },
])(
  'statements use at most $threadsMax threads of a server with $cores cores',
  async ({ cores, threadsMax }) => {
    const used: (CallOptions | undefined)[] = []
    const tables: Tables = {
      async rows<Row>(_: unknown, options?: CallOptions) {
        used.push(options)
        return [{ cores }] as Row[]
      },
      run: async (_, options) => void used.push(options),
      insert: async () => {},
      close: async () => {},
    }
    const bounded = await onHalfTheCores(tables)
    used.length = 0
    const { signal } = new AbortController()
    await bounded.rows({ query: 'SELECT 1' })
    await bounded.run({ query: 'SELECT 1' }, { signal })
    expect(used).toEqual([{ threadsMax }, { threadsMax, signal }])
  },
)
