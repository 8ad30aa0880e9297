/** Checks whether the disk has room for a second set of tables. */
import { megabytes } from '../../runtime/progress.ts'
import type { Shard } from '../../tables/port.ts'

// The history has every version of an entity, not only the latest. Merges write their result before they drop their input.
const growth = 3

export class DiskTooSmall extends Error {
  override name = 'DiskTooSmall'
}

/** Throws `DiskTooSmall`, with the figures. `databases`: those of the current generation. */
export async function checkDisk({ tables, databases: { ledger, read } }: Shard): Promise<void> {
  const [row] = await tables.rows<{ liveBytes: number; freeBytes: number }>({
    query: `SELECT
        (SELECT sum(bytes_on_disk) FROM system.parts
          WHERE active AND database IN {databases:Array(String)}) AS liveBytes,
        (SELECT min(free_space) FROM system.disks) AS freeBytes`,
    query_params: { databases: [ledger, read] },
  })
  const { liveBytes, freeBytes } = row ?? { liveBytes: 0, freeBytes: 0 }
  if (freeBytes >= growth * liveBytes) return
  throw new DiskTooSmall(
    `a rebuild may need ${megabytes(growth * liveBytes)} in addition to the ${megabytes(liveBytes)} of the live tables, but only ` +
      `${megabytes(freeBytes)} are free; free some disk, or begin anyway with --ignore-disk`,
  )
}
