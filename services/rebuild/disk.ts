/** Whether the disk has room for another generation. */
import { megabytes } from '../shared/progress.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { generationTables } from './generation.ts'

export interface DiskEstimate {
  /** What the live generation takes. */
  liveBytes: number
  /** What another may take while it is built. */
  neededBytes: number
  freeBytes: number
}

// The history has every event and not only the latest, and merges write their result before they drop what they merged.
const growth = 3

export class DiskTooSmall extends Error {
  override name = 'DiskTooSmall'
}

export async function estimateDisk(tables: Tables, { model }: Databases): Promise<DiskEstimate> {
  const [row] = await tables.rows<{ liveBytes: number; freeBytes: number }>({
    query: `SELECT
        (SELECT sum(bytes_on_disk) FROM system.parts
          WHERE active AND database = {model:String} AND table IN {tables:Array(String)}) AS liveBytes,
        (SELECT min(free_space) FROM system.disks) AS freeBytes`,
    query_params: { model, tables: [...generationTables] },
  })
  const { liveBytes, freeBytes } = row ?? { liveBytes: 0, freeBytes: 0 }
  return { liveBytes, freeBytes, neededBytes: growth * liveBytes }
}

/** Throws `DiskTooSmall`, with the figures. */
export function checkDisk({ liveBytes, neededBytes, freeBytes }: DiskEstimate): void {
  if (freeBytes >= neededBytes) return
  throw new DiskTooSmall(
    `a rebuild may need ${megabytes(neededBytes)} beside the ${megabytes(liveBytes)} that are live, and ` +
      `${megabytes(freeBytes)} are free; make room, or begin all the same with --ignore-disk`,
  )
}
