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
import { DataDirectoryInUse, lockDataDirectory } from '../log/local/lock.ts'
import { programVersion } from '../runtime/program-version.ts'
import type { ServerTables } from '../tables/clickhouse/clickhouse.ts'
import type { Databases } from '../tables/port.ts'
import {
  apiVersion,
  type ExportFile,
  folderName,
  isExportName,
  type Manifest,
  manifestSchema,
} from './latest.ts'
import {
  copyStatement,
  countStatement,
  dropStatement,
  linesStatement,
  type MomentRow,
  momentStatement,
  parquetStatement,
} from './statement.ts'

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

interface Moment extends MomentRow {
  campaigns: number
}

async function copyCampaigns({ tables, databases }: ExportSource, onProgress: OnExported): Promise<Moment> {
  onProgress('copy')
  const [moment] = await tables.rows<MomentRow>(momentStatement(databases))
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
    api_version: apiVersion,
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
