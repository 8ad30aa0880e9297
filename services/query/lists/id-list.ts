/**
 * The ids of a list in order, in the form in which they are kept until the list expires. No form is a string for each
 * id: a list of a million campaigns takes 4 MB, and is made in milliseconds. Only the ids of a page become strings.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { idSeparator } from './list-statements.ts'

export interface IdList {
  readonly total: number
  /** The memory that this list takes, without what it shares with other lists. */
  readonly bytes: number
  /** About how many bytes `encode` returns. */
  readonly encodedBytes: number
  /** The ids at these places. Places beyond the end have none, and neither has a campaign that is no longer public. */
  page(limit: number, offset: number): string[]
  /** All ids in UTF-8, joined by `idSeparator`. It yields to the event loop between parts of a long list. */
  encode(): Promise<Buffer>
}

const checkpointStep = 256
// Joining so many ids takes about a millisecond.
const encodedAtOnce = 8_192

/** The ids of ClickHouse or Redis, which come as one string, joined by `idSeparator`. */
export function joinedIdList(joinedIds: string, total: number): IdList {
  /** The offset of every `checkpointStep`-th id, as far as pages have needed it. */
  const checkpoints = [0]

  // The offset of the id at this place. It starts at the nearest checkpoint before it, and adds new checkpoints on the
  // way.
  function startOf(place: number): number {
    const wanted = Math.floor(place / checkpointStep)
    for (let known = checkpoints.length; known <= wanted; known++) {
      checkpoints.push(skip(joinedIds, checkpoints[known - 1] ?? 0, checkpointStep))
    }
    return skip(joinedIds, checkpoints[wanted] ?? 0, place % checkpointStep)
  }

  return {
    total,
    bytes: 2 * joinedIds.length + (8 * total) / checkpointStep,
    encodedBytes: joinedIds.length,
    page(limit, offset) {
      const count = Math.min(limit, total - offset)
      if (count <= 0) return []
      const start = startOf(offset)
      const end = skip(joinedIds, start, count) - idSeparator.length
      return joinedIds.slice(start, end).split(idSeparator).filter(isPresent)
    },
    encode: async () => Buffer.from(joinedIds),
  }
}

/** A campaign that has left the list keeps its place, with an empty text. So no other campaign moves. */
function isPresent(id: string): boolean {
  return id !== ''
}

// The offset after `count` ids and their separators. After the last id, it counts one more separator.
function skip(joinedIds: string, from: number, count: number): number {
  let at = from
  for (let skipped = 0; skipped < count; skipped++) {
    const separator = joinedIds.indexOf(idSeparator, at)
    if (separator < 0) return joinedIds.length + idSeparator.length
    at = separator + idSeparator.length
  }
  return at
}

/**
 * The ids in these slots of a list index: four bytes each. `idOf` returns an empty text for a slot that the campaign of
 * this list has left.
 */
export function slotIdList(slots: Uint32Array, idOf: (slot: number) => string): IdList {
  const idsBetween = (from: number, to: number) => Array.from(slots.subarray(from, to), idOf)

  return {
    total: slots.length,
    bytes: slots.byteLength,
    // Only a list that is stored is asked for it.
    get encodedBytes() {
      const sample = idsBetween(0, checkpointStep)
      const idBytes = sample.reduce((sum, id) => sum + id.length, 0) / Math.max(1, sample.length)
      return slots.length * (idBytes + idSeparator.length)
    },
    page: (limit, offset) => idsBetween(offset, offset + limit).filter(isPresent),
    async encode() {
      const parts: Buffer[] = []
      for (let from = 0; from < slots.length; from += encodedAtOnce) {
        // As long as a part takes, so that requests run for half of the time.
        if (from > 0) await delay(1)
        const separator = from > 0 ? idSeparator : ''
        parts.push(Buffer.from(separator + idsBetween(from, from + encodedAtOnce).join(idSeparator)))
      }
      return Buffer.concat(parts)
    },
  }
}
