/** Looks for texts in everything that a service has stored: files byte by byte, and tables row by row. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Tables } from '../../../services/tables/port.ts'
import { versionedTables } from '../../../services/tables/superseded.ts'
import { pathsIn } from '../runner/paths-in.ts'

/**
 * A random text to look for in files. ClickHouse compresses with LZ4, which tears a text apart if four of its characters stand in the
 * block already. With these characters that is rare, with hexadecimal digits one file in 16 hid its text. One may still lose its last
 * character to a neighbour, so a test that expects to find something looks for several.
 */
export const personalText = (what: string) => `${what}-${randomBytes(12).toString('base64url')}`

/** The files below a folder that contain one of the texts, as paths in it. Files that disappear meanwhile are left out. */
export function filesWith(root: string, texts: readonly string[]): string[] {
  const wanted = texts.map(text => Buffer.from(text))
  return pathsIn(root)
    .filter(({ isFile }) => isFile)
    .map(({ path }) => path)
    .filter(path => {
      const content = contentOf(path)
      return wanted.some(text => content.includes(text))
    })
    .map(path => relative(root, path))
}

/**
 * The tables and views of all databases that contain one of the texts in any row of an active part, superseded rows
 * included, as `database.table`. What ClickHouse makes up itself (`system`) is left out.
 */
export async function tablesWith(tables: Tables, texts: readonly string[]): Promise<string[]> {
  // A view with parameters has no columns in `system.columns`. It shows rows of a table that is searched.
  const all = await tables.rows<{ place: string }>({
    query: `SELECT DISTINCT concat(database, '.', table) AS place FROM system.columns
            WHERE lower(database) NOT IN ('system', 'information_schema', 'default') ORDER BY place`,
  })
  const found: string[] = []
  for (const { place } of all) {
    const [row] = await tables.rows<{ rows: number }>({
      query: `SELECT countIf(multiSearchAny(toJSONString(tuple(*)), {texts:Array(String)})) AS rows FROM ${place}`,
      query_params: { texts },
    })
    if (row && row.rows > 0) found.push(place)
  }
  return found
}

/**
 * Of the tables that may contain texts of people, those with files of parts that ClickHouse had replaced before this time, Unix ms. A
 * projector that runs goes on to write, and ClickHouse to merge.
 */
export async function tablesWithOldParts(tables: Tables, before: number): Promise<string[]> {
  const rows = await tables.rows<{ place: string }>({
    query: `SELECT DISTINCT concat(database, '.', table) AS place FROM system.parts
            WHERE NOT active AND remove_time < fromUnixTimestamp({before:UInt32}) AND table IN {names:Array(String)} ORDER BY place`,
    query_params: { names: versionedTables, before: Math.floor(before / 1_000) },
  })
  return rows.map(({ place }) => place)
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
