/** Finds the latest whole copy in a directory, and opens its files. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { count, timestamp, timestampForm } from '../../contracts/api/schemas.ts'

/** A copy's folder: when it was made, so that the latest one is the last by name. */
export function folderName(now: number): string {
  return new Date(now).toISOString().replace(/[-:.]/g, '')
}

export function isExportName(name: string): boolean {
  return /^\d{8}T\d{9}Z$/.test(name)
}

export interface OpenFile extends Pick<Manifest, 'as_of'> {
  handle: FileHandle
  bytes: number
  sha256: string
}

/** The manifest of the latest copy, or undefined if there is none. */
export async function latestManifest(directory: string): Promise<Manifest | undefined> {
  return (await latest(directory))?.manifest
}

/** A file of the latest copy, or undefined if there is none. The caller closes it. An export may remove its folder meanwhile. */
export async function openLatest(directory: string, name: ExportFile): Promise<OpenFile | undefined> {
  // A folder that went between two looks has a successor.
  for (let looks = 0; looks < looksMax; looks++) {
    const found = await latest(directory)
    const file = found?.manifest.files.find(file => file.name === name)
    if (!found || !file) return undefined
    const handle = await openOwn(join(found.folder, name))
    if (!handle) continue
    const { size } = await handle.stat()
    if (size === file.bytes) return { ...file, as_of: found.manifest.as_of, handle }
    await handle.close()
    throw new Error(`${join(found.folder, name)} has ${size} bytes, and its manifest says ${file.bytes}`)
  }
  return undefined
}

const looksMax = 3

async function latest(directory: string): Promise<{ folder: string; manifest: Manifest } | undefined> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(ifMissing)
  // A link is no folder.
  const names = (entries ?? []).filter(entry => entry.isDirectory() && isExportName(entry.name))
  for (const { name } of names.sort((a, b) => (a.name < b.name ? 1 : -1))) {
    const folder = join(directory, name)
    await using handle = await openOwn(join(folder, 'manifest.json'))
    if (handle) return { folder, manifest: manifestSchema.parse(JSON.parse(await handle.readFile('utf8'))) }
  }
  return undefined
}

/** Opens a file, but no link. Undefined if there is none. */
function openOwn(path: string): Promise<FileHandle | undefined> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(ifMissing)
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/* What a whole copy says of itself: `manifest.json` beside its files. */

/** The files of a copy, and their types. */
export const exportFiles = {
  'campaigns.ndjson.gz': 'application/gzip',
  'campaigns.parquet': 'application/vnd.apache.parquet',
} as const

export type ExportFile = keyof typeof exportFiles

export const exportNames = Object.keys(exportFiles) as [ExportFile, ...ExportFile[]]

export const manifestSchema = z
  .object({
    as_of: timestamp.meta({
      description: `The copy contains every change up to this moment. Send it as \`updated_since\` and \`since\`. ${timestampForm}`,
    }),
    created_at: timestamp.meta({
      description: `When the copy was made. \`days_remaining\` is of this moment. ${timestampForm}`,
    }),
    campaigns: count.meta({ description: 'The number of campaigns, in each of the files.' }),
    api_version: z.string().meta({ description: 'The version of the API whose fields the campaigns have.' }),
    program_version: z.string().meta({ description: 'The version of the program that made the copy.' }),
    files: z
      .array(
        z
          .object({
            name: z.enum(exportNames).meta({ description: 'The last part of its path.' }),
            bytes: count.meta({ description: 'Its length.' }),
            sha256: z
              .string()
              .regex(/^[0-9a-f]{64}$/)
              .meta({ description: 'The SHA-256 of its bytes, in hex. Its `ETag` is the same.' }),
          })
          .meta({ id: 'ExportFile', description: 'A file of a whole copy.' }),
      )
      .meta({ description: 'The files. Each has all campaigns.' }),
  })
  .meta({ id: 'ExportManifest', description: 'A whole copy of the public campaigns.' })

export type Manifest = z.infer<typeof manifestSchema>
