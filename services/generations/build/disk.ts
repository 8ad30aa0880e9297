/** Checks whether the disk has room for a second set of tables. */
import { megabytes } from '../../runtime/progress.ts'
import type { Databases, Tables } from '../../tables/port.ts'

export interface DiskEstimate {
  /** Size of the current generation. */
  liveBytes: number
  /** How much a new generation may need while it is built. */
  neededBytes: number
  freeBytes: number
}

// The history has every version of an entity, not only the latest. Merges write their result before they drop their input.
const growth = 3

export class DiskTooSmall extends Error {
  override name = 'DiskTooSmall'
}

export async function estimateDisk(tables: Tables, { ledger, read }: Databases): Promise<DiskEstimate> {
  const [row] = await tables.rows<{ liveBytes: number; freeBytes: number }>({
    query: `SELECT
        (SELECT sum(bytes_on_disk) FROM system.parts
          WHERE active AND database IN {databases:Array(String)}) AS liveBytes,
        (SELECT min(free_space) FROM system.disks) AS freeBytes`,
    query_params: { databases: [ledger, read] },
  })
  const { liveBytes, freeBytes } = row ?? { liveBytes: 0, freeBytes: 0 }
  return { liveBytes, freeBytes, neededBytes: growth * liveBytes }
}

/** Throws `DiskTooSmall`, with the figures. */
export function checkDisk({ liveBytes, neededBytes, freeBytes }: DiskEstimate): void {
  if (freeBytes >= neededBytes) return
  throw new DiskTooSmall(
    `a rebuild may need ${megabytes(neededBytes)} in addition to the ${megabytes(liveBytes)} of the live tables, but only ` +
      `${megabytes(freeBytes)} are free; free some disk, or begin anyway with --ignore-disk`,
  )
}
