/**
 * Ids in parts, each for one statement: ClickHouse bounds the length of a parameter, at 128 KiB by default. A server that refuses one
 * refuses it again, however often the statement is repeated.
 */

// A character takes three bytes at most, with its escapes.
const charsMax = 40_000

export function* idParts(ids: readonly string[], countMax: number): Generator<string[]> {
  let part: string[] = []
  let chars = 0
  for (const id of ids) {
    if (part.length > 0 && (part.length === countMax || chars + id.length > charsMax)) {
      yield part
      part = []
      chars = 0
    }
    part.push(id)
    chars += id.length
  }
  if (part.length > 0) yield part
}
