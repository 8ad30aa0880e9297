/**
 * The generator of the Kickstarter events, made quick. It shuffles lines by taking one out of the middle of an array for each event.
 * With duplicates the array grows to 70,000 lines, and moving them takes nine tenths of the generator's time. The copy that is made
 * here keeps them in pieces. It writes the same bytes.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const array = 'let window = []'
/** What the generator uses of an array: `push`, `length` and `splice` of one. */
const pieces = `let window = {
  length: 0,
  pieces: [[]],
  push(line) {
    if (this.pieces.at(-1).length >= 512) this.pieces.push([])
    this.pieces.at(-1).push(line)
    this.length++
  },
  splice(at) {
    let n = 0
    while (at >= this.pieces[n].length) at -= this.pieces[n++].length
    const taken = this.pieces[n].splice(at, 1)
    if (this.pieces[n].length === 0 && this.pieces.length > 1) this.pieces.splice(n, 1)
    this.length--
    return taken
  },
}`

/** Writes the quick copy of the generator into a folder, and returns its path. */
export function quickGenerator(generator: string, folder: string): string {
  const text = readFileSync(generator, 'utf8')
  // A later generator may not need it, or may need more of an array.
  if (!text.includes(array)) return generator
  const path = join(folder, 'generator.mjs')
  writeFileSync(path, text.replace(array, pieces))
  return path
}
