import { describe, expect, test } from 'vitest'
import type { Tables } from '../../../services/tables/port.ts'
import { checkShards } from '../../../services/tables/shards.ts'

const databases = { base: 'model', ledger: 'model_ledger_1', read: 'model_read_1', views: 'views' }

describe('URLs that are not the shards of the cluster', () => {
  test('are refused if a shard has replicas, and the error says which one', async () => {
    const replicated = { replicas: 2, largest: 2 }
    await expect(checked([replicated, { ...replicated, shard: 'two' }])).rejects.toThrow(
      'shard 2 of the cluster main has 2 replicas in remote_servers: leave one (deploy/grow.md, "Shards")',
    )
  })
})

/** Checks URLs whose servers answer this. */
function checked(answers: readonly object[]): Promise<void> {
  const shards = answers.map(answer => {
    const row = { shard: 'one', shards: 2, replicas: 1, largest: 1, ...answer }
    return { databases, tables: { rows: async () => [row] } as unknown as Tables }
  })
  return checkShards({ shards, close: async () => {} }, 'main')
}
