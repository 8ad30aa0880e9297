/**
 * Writes whole copies: every public campaign as the API shows it on its own page, in a folder of its own with a manifest.
 *
 * Promise: a folder under its name is whole. It is written under another name, synced, and then renamed. An earlier copy is removed
 * only after that. Whatever an export that was killed has left is removed by the next one.
 */
import { createHash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { basePath, daysRemainingSql } from '../../contracts/api/conventions.ts'
import { shownColumns } from '../../contracts/api/schemas.ts'
import { DataDirectoryInUse, lockDataDirectory } from '../log/local/lock.ts'
import { programVersion } from '../runtime/program-version.ts'
import type { ServerTables } from '../tables/clickhouse/clickhouse.ts'
import type { Databases, Statement } from '../tables/port.ts'
import { type ExportFile, folderName, isExportName, type Manifest, manifestSchema } from './latest.ts'

export interface ExportSource {
  /** In a session of its own. */
  tables: Pick<ServerTables, 'rows' | 'run' | 'stream'>
  databases: Pick<Databases, 'read'>
}

/** `done`: of the campaigns, in the file that is written; undefined while they are copied. */
export type OnExported = (stage: 'copy' | ExportFile, done?: number, total?: number) => void

const partial = '.partial-'

/** Writes a copy into the directory, which is made if it is missing, and removes the earlier ones. */
export async function writeExport(
  source: ExportSource,
  directory: string,
  onProgress: OnExported,
): Promise<Manifest> {
  using _lock = lockExports(directory)
  await removeAll(directory, name => name.startsWith(partial))
  const moment = await copyCampaigns(source, onProgress)
  const name = folderName(moment.now)
  const folder = join(directory, partial + name)
  await mkdir(folder)
  const manifest = await writeFiles(source.tables, folder, moment, onProgress)
  await source.tables.run(dropStatement)
  await rename(folder, join(directory, name))
  await sync(directory)
  await removeAll(directory, other => isExportName(other) && other !== name)
  return manifest
}

/** Removes all copies, and what killed exports have left. Returns how many there were. In a dry run it changes nothing. */
export async function removeExports(directory: string, isDry: boolean): Promise<number> {
  if (!existsSync(directory)) return 0
  const isWanted = (name: string) => isExportName(name) || name.startsWith(partial)
  const counted = async () => (await readdir(directory)).filter(isWanted).length
  // Without the lock, which would write a file.
  if (isDry) return counted()
  using _lock = lockExports(directory)
  const copies = await counted()
  await removeAll(directory, isWanted)
  return copies
}

/** The lock ends with its block. */
function lockExports(directory: string): Disposable {
  try {
    const lock = lockDataDirectory(directory)
    return { [Symbol.dispose]: lock.close }
  } catch (cause) {
    if (!(cause instanceof DataDirectoryInUse)) throw cause
    throw new Error(`another export writes to ${directory}`, { cause })
  }
}

async function removeAll(directory: string, isWanted: (name: string) => boolean): Promise<void> {
  for (const name of (await readdir(directory)).filter(isWanted)) {
    await rm(join(directory, name), { recursive: true, force: true })
  }
}

/** The time and the watermark, Unix ms, and how many campaigns were copied then. */
interface Moment {
  now: number
  as_of: number
  campaigns: number
}

async function copyCampaigns({ tables, databases }: ExportSource, onProgress: OnExported): Promise<Moment> {
  onProgress('copy')
  const [moment] = await tables.rows<Omit<Moment, 'campaigns'>>(momentStatement(databases))
  if (moment === undefined) throw new Error('the statement of the watermark returned no row')
  await tables.run(copyStatement(databases, moment.now))
  const [counted] = await tables.rows<{ campaigns: number }>(countStatement)
  return { ...moment, campaigns: counted?.campaigns ?? 0 }
}

async function writeFiles(
  tables: ExportSource['tables'],
  folder: string,
  { now, as_of, campaigns }: Moment,
  onProgress: OnExported,
): Promise<Manifest> {
  let sent = 0
  const counter = transformOf(chunk => {
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, at + 1)) sent++
    onProgress('campaigns.ndjson.gz', sent, campaigns)
  })
  const gzip = createGzip({ level: 4 })
  const source = await tables.stream(linesStatement)
  const lines = await writeFile(folder, 'campaigns.ndjson.gz', [source, counter, gzip])
  if (sent !== campaigns) throw new Error(`ClickHouse sent ${sent} of ${campaigns} campaigns`)
  onProgress('campaigns.parquet')
  const parquet = await writeFile(folder, 'campaigns.parquet', [await tables.stream(parquetStatement)])
  const manifest = manifestSchema.parse({
    as_of: new Date(as_of).toISOString(),
    created_at: new Date(now).toISOString(),
    campaigns,
    api_version: basePath.split('/').at(-1),
    program_version: programVersion,
    files: [lines, parquet],
  })
  const text = `${JSON.stringify(manifest, null, 2)}\n`
  await pipeline([Buffer.from(text)], createWriteStream(join(folder, 'manifest.json'), { flush: true }))
  await sync(folder)
  return manifest
}

/** Writes a file, and syncs it. */
async function writeFile(
  folder: string,
  name: ExportFile,
  parts: (NodeJS.ReadableStream | NodeJS.ReadWriteStream)[],
): Promise<Manifest['files'][number]> {
  const hash = createHash('sha256')
  let bytes = 0
  const noted = transformOf(chunk => {
    hash.update(chunk)
    bytes += chunk.length
  })
  await pipeline([...parts, noted, createWriteStream(join(folder, name), { flags: 'wx', flush: true })])
  return { name, bytes, sha256: hash.digest('hex') }
}

const newline = 0x0a

/** Passes the bytes on, and shows them. */
function transformOf(onChunk: (chunk: Buffer) => void): Transform {
  return new Transform({
    transform(chunk: Buffer, _, done) {
      onChunk(chunk)
      done(null, chunk)
    },
  })
}

async function sync(directory: string): Promise<void> {
  await using handle = await open(directory)
  await handle.sync()
}

/*
 * The statements. A copy is two files with the same campaigns, but each statement of ClickHouse reads the tables as they are when it starts.
 * So one copies the campaigns into a temporary table of the session, and both files are written from that. ClickHouse drops the table with
 * the session.
 */

/** What is read after it has every change with a stamp before the watermark (contracts/tables/generation/0002-batches.sql). */
function momentStatement({ read }: Pick<Databases, 'read'>): Statement {
  return {
    query: `SELECT
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS now,
    ifNull((SELECT toUnixTimestamp64Milli(reached) FROM ${read}.watermark), 0) AS as_of`,
  }
}

/**
 * Copies every public campaign into the temporary table, with the fields of a detail under the API's names. `now`: the moment for
 * `days_remaining`, Unix milliseconds.
 */
function copyStatement({ read }: Pick<Databases, 'read'>, now: number): Statement {
  return {
    query: `CREATE TEMPORARY TABLE copied_campaigns ENGINE = MergeTree ORDER BY id AS
SELECT
    ${detailFields().join(',\n    ')}
FROM ${read}.campaigns FINAL`,
    query_params: { now },
  }
}

/** ClickHouse drops the table with the session, but keeps its files for some minutes then. */
export const dropStatement: Statement = { query: 'DROP TEMPORARY TABLE IF EXISTS copied_campaigns SYNC' }

const countStatement: Statement = { query: 'SELECT count() AS campaigns FROM copied_campaigns' }

const copied = 'SELECT * FROM copied_campaigns ORDER BY id'

/** Each line is a campaign as the API shows it on its own page, whatever the server's profile says about JSON. */
export const linesStatement: Statement = {
  query: `${copied}
SETTINGS date_time_output_format = 'iso', output_format_json_quote_64bit_integers = 0, output_format_json_quote_decimals = 0,
    output_format_decimal_trailing_zeros = 0, output_format_json_escape_forward_slashes = 0,
    output_format_json_named_tuples_as_objects = 1
FORMAT JSONEachRow`,
}

// Writing keeps a few groups of rows in memory. Readers take the groups side by side.
const parquetStatement: Statement = {
  query: `${copied}
SETTINGS output_format_parquet_row_group_size = 50000, output_format_parquet_compression_method = 'zstd',
    output_format_parquet_string_as_string = 1
FORMAT Parquet`,
}

function detailFields(): string[] {
  const { list, detail } = shownColumns
  const own = [...list, ...detail].filter(({ part }) => part === undefined)
  const creator = list.filter(({ part }) => part !== undefined)
  const types = creator.map(({ part, column }) => `${part} ${column.type}`).join(', ')
  return [
    ...own.flatMap(({ column: { name }, field }) => [
      name === field ? name : `${name} AS ${field}`,
      ...(field === 'end_date' ? [`${daysRemainingSql} AS days_remaining`] : []),
      ...(field === 'created_at' ? ['updated_at'] : []),
    ]),
    `CAST((${creator.map(({ column }) => column.name).join(', ')}), 'Tuple(${types})') AS creator`,
  ]
}
