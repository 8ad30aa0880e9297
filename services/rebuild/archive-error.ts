/** What is wrong with an archive, and where. */

/** A place within a file, each counted from 1; objects over the whole file. */
export interface ArchivePlace {
  line?: number
  block?: number
  object?: number
}

/** A file of archived events is not to be used: the first thing in it that is wrong. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
  readonly path: string
  readonly place: ArchivePlace
  /** Said of the file or the place: `is cut off`, `amount_minor -1 is negative`. */
  readonly reason: string

  constructor(path: string, place: ArchivePlace, reason: string, cause?: unknown) {
    super(`${path}${placeText(place)}: ${reason}`, { cause })
    this.path = path
    this.place = place
    this.reason = reason
  }
}

function placeText({ line, block, object }: ArchivePlace): string {
  if (line !== undefined) return `:${line}`
  if (object !== undefined) return `: object ${object}`
  return block === undefined ? '' : `: block ${block}`
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
