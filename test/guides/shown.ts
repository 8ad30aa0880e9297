/**
 * Compares the output of lines with what a guide shows.
 *
 * - `text`: every line of it is printed, in this order; `...` stands for any text within a line.
 * - `json`: every printed value equals the one shown. `"..."` stands for any value, and as a key for any other fields.
 * - For an example only the form is compared: the same fields, with values of the same types. An empty list stands for any.
 */
import type { Block } from './blocks.ts'

/** The difference; `undefined` if there is none. */
export function differenceOf(output: string, shown: NonNullable<Block['shown']>): string | undefined {
  if (shown.language === 'text') return textDifference(output, shown.text)
  const wanted: unknown = JSON.parse(shown.text)
  for (const printed of output.trim().split(/(?<=\})\s*(?=\{)/)) {
    const difference = valueDifference(parsed(printed), wanted, shown.isExample, 'the answer')
    if (difference !== undefined) return difference
  }
  return undefined
}

function textDifference(output: string, text: string): string | undefined {
  let rest = output
  for (const line of text.trimEnd().split('\n')) {
    const pattern = line
      .split('...')
      .map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')
    const found = new RegExp(`^${pattern}$`, 'm').exec(rest)
    if (!found) return `this line is not printed, or not in this place: ${line}`
    rest = rest.slice(found.index + found[0].length)
  }
  return undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function valueDifference(is: unknown, shown: unknown, isExample: boolean, path: string): string | undefined {
  if (shown === '...') return undefined
  if (Array.isArray(shown)) {
    if (!Array.isArray(is)) return `${path} is no list`
    if (!isExample && is.length !== shown.length) return `${path} has ${is.length} items, not ${shown.length}`
    const [first] = shown
    return firstOf(is, (item, index) =>
      valueDifference(item, isExample ? (first ?? '...') : shown[index], isExample, `${path}[${index}]`),
    )
  }
  if (typeof shown === 'object' && shown !== null) {
    if (typeof is !== 'object' || is === null) return `${path} is ${JSON.stringify(is)}, no object`
    const { '...': others, ...fields } = shown as Record<string, unknown>
    const more = Object.keys(is).find(name => !(name in fields))
    if (others === undefined && more !== undefined) return `${path}.${more} is not shown`
    return firstOf(Object.entries(fields), ([name, value]) =>
      name in is
        ? valueDifference((is as Record<string, unknown>)[name], value, isExample, `${path}.${name}`)
        : `${path}.${name} is missing`,
    )
  }
  const isSame = isExample ? typeof is === typeof shown : is === shown
  return isSame ? undefined : `${path} is ${JSON.stringify(is)}, not ${JSON.stringify(shown)}`
}

function firstOf<T>(items: readonly T[], look: (item: T, index: number) => string | undefined) {
  for (const [index, item] of items.entries()) {
    const found = look(item, index)
    if (found !== undefined) return found
  }
  return undefined
}
