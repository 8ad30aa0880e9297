/**
 * The swap permit is the condition of the swap statement.
 *
 * EXCHANGE TABLES takes no condition. But it exchanges its pairs in their order, and fails at the first table that does not
 * exist. So its first pair is the permit, two empty tables. A rebuild creates the permit during its fold pause. A process that
 * takes the fold over revokes it before it folds. If the rebuild then wakes up, its statement fails and swaps nothing. So it
 * does not matter how long a process stands still between its last look at the epoch and its statement.
 *
 * An EXCHANGE and a DROP of the same table wait for each other, so a permit is never revoked in the middle of a swap.
 */
import type { Databases, Tables } from '../../tables/port.ts'

/** The names of the two tables of a permit. */
export type SwapPermit = readonly [first: string, second: string]

const permitPrefix = 'swap_permit_'

/** `epoch`: of the fold pause. A permit of another pause has another name. */
export async function createPermit(tables: Tables, { model }: Databases, epoch: bigint): Promise<SwapPermit> {
  const permit = [`${permitPrefix}${epoch}_a`, `${permitPrefix}${epoch}_b`] as const
  for (const name of permit) {
    await tables.run({ query: `CREATE TABLE IF NOT EXISTS ${model}.${name} (unused UInt8) ENGINE = Null` })
  }
  return permit
}

/** The pair that makes a swap statement depend on the permit, if it is the first pair. */
export function permitPair([first, second]: SwapPermit, { model }: Databases): string {
  return `${model}.${first} AND ${model}.${second}`
}

export async function isRevoked(tables: Tables, { model }: Databases, [first]: SwapPermit): Promise<boolean> {
  const [found] = await tables.rows<{ tables: number }>({
    query:
      'SELECT count() AS tables FROM system.tables WHERE database = {model:String} AND name = {first:String}',
    query_params: { model, first },
  })
  return found?.tables === 0
}

/** Removes every permit. Statements that need one fail from now on. */
export async function revokePermits(tables: Tables, { model }: Databases): Promise<void> {
  const found = await tables.rows<{ name: string }>({
    query:
      'SELECT name FROM system.tables WHERE database = {model:String} AND startsWith(name, {prefix:String})',
    query_params: { model, prefix: permitPrefix },
  })
  for (const { name } of found) await tables.run({ query: `DROP TABLE IF EXISTS ${model}.${name} SYNC` })
}
