/** Reads CHANGELOG.md: what it says to API consumers. Pure. */

export interface Release {
  /** `Unreleased`, or a version. */
  version: string
  day: string | undefined
  groups: readonly { title: string; entries: readonly string[] }[]
}

const audiences = /^\*\*([^*]+)\*\*: /
const forConsumers = new Set(['API consumers', 'Everybody'])

/** The releases of a changelog in the form of Keep a Changelog, with only the entries for API consumers. */
export function consumerReleases(text: string): Release[] {
  return sections(text, /^## \[(?<title>[^\]]+)\](?: - (?<day>\S+))?$/)
    .map(({ title, day, lines }) => ({
      version: title,
      day,
      groups: sections(lines.join('\n'), /^### (?<title>.+)$/)
        .map(group => ({ title: group.title, entries: consumerEntries(group.lines) }))
        .filter(({ entries }) => entries.length > 0),
    }))
    .filter(({ groups }) => groups.length > 0)
}

function sections(
  text: string,
  heading: RegExp,
): { title: string; day: string | undefined; lines: string[] }[] {
  const found: { title: string; day: string | undefined; lines: string[] }[] = []
  for (const line of text.split('\n')) {
    const groups = heading.exec(line)?.groups
    if (groups?.title !== undefined) found.push({ title: groups.title, day: groups.day, lines: [] })
    else found.at(-1)?.lines.push(line)
  }
  return found
}

/** Entries may go on over several lines, indented. */
function consumerEntries(lines: readonly string[]): string[] {
  return lines
    .join('\n')
    .split(/^- /m)
    .slice(1)
    .map(entry => entry.replace(/\s+/g, ' ').trim())
    .filter(entry => {
      const named = audiences.exec(entry)?.[1]?.split(', ') ?? []
      return named.some(audience => forConsumers.has(audience))
    })
    .map(entry => capitalized(entry.replace(audiences, '').replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')))
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
