/**
 * Sends the files of the latest whole copy, in whole or in part.
 *
 * Promises: a connection is bounded in time, one key has a few at once and all together some hundreds; further ones wait for their
 * turn. A download ends as soon as it is known that the one who asked may not ask any more.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { ClientGoneError, createFairTurns } from '../runtime/async/fair-turns.ts'
import { type ByteRange, isNoneMatch, rangeOf } from '../runtime/http/request-headers.ts'
import { type ExportFile, exportFiles, type OpenFile, openLatest } from './latest.ts'

export interface Download {
  request: IncomingMessage
  response: ServerResponse
  name: ExportFile
  /** Who asks. */
  owner: string
  /** Whether the owner may still ask, looked at again and again. If it throws, that is not known, and the download goes on. */
  isAllowed: () => boolean | Promise<boolean>
  /** Called before anything is sent. Returns the headers of every answer. */
  begin: () => Record<string, string>
}

/** `none`: there is no copy, and `unsatisfiable`: the range begins after the end. In both cases nothing was sent. */
export type Downloaded = 'sent' | 'none' | { unsatisfiable: number }

/** Rejects with `ClientGoneError` if either side cuts the connection, and with `OverloadedError` if there is no turn for it. */
export type SendDownload = (download: Download) => Promise<Downloaded>

// DuckDB reads parts side by side, one a core.
export const defaultBounds = {
  // A slow one costs its two buffers of 64 KiB. The keys of a few people must not take all.
  runningMax: 512,
  runningPerKeyMax: 8,
  waitingPerKeyMax: 64,
  waitMsMax: 10_000,
  // A reader that is slower goes on with a range.
  msMax: 1_800_000,
  // How long a reader may take nothing: it may be busy with what it has.
  silenceMsMax: 300_000,
  lookMs: 500,
}

/** `directory`: as `pledgeview export` writes it; undefined: there is no copy. */
export function createDownloads(
  directory: string | undefined,
  { msMax, silenceMsMax, lookMs, ...ofTurns } = defaultBounds,
): SendDownload {
  const turns = createFairTurns(ofTurns)

  async function send(file: OpenFile, download: Download): Promise<Downloaded> {
    const { request, response, name, isAllowed, begin } = download
    const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = request.headers
    const etag = `"${file.sha256}"`
    const part = ifRange === undefined || ifRange === etag ? rangeOf(range, file.bytes) : undefined
    const isKnown = isNoneMatch(ifNoneMatch, etag)
    if (part === 'unsatisfiable' && !isKnown) return { unsatisfiable: file.bytes }
    const headers = { ...begin(), etag, 'cache-control': 'private, no-cache', 'x-data-as-of': file.as_of }
    if (isKnown || part === 'unsatisfiable') {
      response.writeHead(304, headers).end()
      return 'sent'
    }
    response.writeHead(part ? 206 : 200, { ...headers, ...contentHeaders(name, file, part) })
    if (request.method === 'HEAD') {
      response.end()
      return 'sent'
    }
    // Node sets the usual time again with the next request.
    response.socket?.setTimeout(silenceMsMax)
    const until = performance.now() + msMax
    const look = setInterval(async () => {
      const mayGoOn = performance.now() <= until && (await Promise.try(isAllowed).catch(() => true))
      if (!mayGoOn) response.destroy()
    }, lookMs)
    try {
      await pipeline(file.handle.createReadStream({ ...part, autoClose: false }), response)
      return 'sent'
    } catch (cause) {
      response.destroy()
      throw new ClientGoneError('the download was cut', { cause })
    } finally {
      clearInterval(look)
    }
  }

  return async download => {
    if (directory === undefined) return 'none'
    const { owner, response, name } = download
    return turns.run({ key: owner, isGone: () => response.destroyed }, async () => {
      const file = await openLatest(directory, name)
      await using _handle = file?.handle
      return file === undefined ? 'none' : await send(file, download)
    })
  }
}

function contentHeaders(name: ExportFile, { bytes, as_of }: OpenFile, part: ByteRange | undefined) {
  const stamp = as_of.replace(/[-:.]/g, '')
  return {
    'content-type': exportFiles[name],
    'content-length': part ? part.end - part.start + 1 : bytes,
    'content-disposition': `attachment; filename="${name.replace('.', `-${stamp}.`)}"`,
    'accept-ranges': 'bytes',
    ...(part && { 'content-range': `bytes ${part.start}-${part.end}/${bytes}` }),
  }
}
