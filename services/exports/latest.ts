/** Finds the latest whole copy in a directory, and opens its files. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type ExportFile, type Manifest, manifestSchema } from './manifest.ts'

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
    const handle = await openOwn(join(folder, 'manifest.json'))
    if (!handle) continue
    try {
      return { folder, manifest: manifestSchema.parse(JSON.parse(await handle.readFile('utf8'))) }
    } finally {
      await handle.close()
    }
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
