/** The error of an archive: what is wrong, and at which place. */

/** A place in a file. Each number counts from 1. Objects are counted over the whole file. */
export interface ArchivePlace {
  line?: number
  block?: number
  object?: number
}

/** A file of archived events cannot be used. Names the first error in it. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
  readonly path: string
  readonly place: ArchivePlace
  /** Worded to follow the file or the place: `is cut off`, `amount_minor -1 is negative`. */
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
