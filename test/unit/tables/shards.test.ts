import { describe, expect, test } from 'vitest'
import type { Tables } from '../../../services/tables/port.ts'
import { checkShards } from '../../../services/tables/shards.ts'

const databases = { base: 'model', ledger: 'model_ledger_1', read: 'model_read_1', views: 'views' }

describe('URLs that are not the shards of the cluster', () => {
  test('are refused if there are more or fewer of them', async () => {
    await expect(checked([{ shards: 3 }, { shard: 'two', shards: 3 }])).rejects.toThrow(
      'the cluster main has 3 shards, and 2 URLs are given',
    )
  })

  test('are refused if two of them lead to the same shard', async () => {
    await expect(checked([{}, {}])).rejects.toThrow('two URLs lead to the shard one of the cluster main')
  })

  test('are refused if a shard has replicas, and the error says which one', async () => {
    const replicated = { replicas: 2, largest: 2 }
    await expect(checked([replicated, { ...replicated, shard: 'two' }])).rejects.toThrow(
      'shard 2 of the cluster main has 2 replicas in remote_servers: leave one (deploy/grow.md, "Shards")',
    )
  })

  test('are not these', async () => {
    await expect(checked([{}, { shard: 'two' }])).resolves.toBeUndefined()
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
