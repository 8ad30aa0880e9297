/** Links in Markdown files: links within the project must have a target. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { root } from './blocks.ts'

const notOurs = new Set(['node_modules', '.git', '.pledgeview'])

/** All Markdown files of the project, as paths from its root. */
export function markdownFiles(folder = root): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    if (notOurs.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return markdownFiles(path)
    return entry.name.endsWith('.md') ? [relative(root, path)] : []
  })
}

/** The links of a file without a target; links to other hosts are not checked. */
export function brokenLinks(file: string): string[] {
  return linksOf(readFileSync(join(root, file), 'utf8')).filter(link => {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? join(root, file) : join(root, dirname(file), path)
    if (!existsSync(target)) return true
    if (anchor === undefined) return false
    return statSync(target).isDirectory() || !anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
  })
}

export function linksOf(markdown: string): string[] {
  const links = withoutCode(markdown).matchAll(/\]\(([^()\s]+)\)/g)
  return [...links].map(([, link = '']) => link).filter(link => !/^[a-z]+:/.test(link))
}

/** The anchors that GitHub makes from headings: a repeated heading gets a number. */
function anchorsOf(markdown: string): string[] {
  const seen = new Map<string, number>()
  return [...withoutCode(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const anchor = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  })
}

function withoutCode(markdown: string): string {
  return markdown
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/(?<=^|[^`])`[^`\n]+`/g, code => code.replace(/[[\]()]/g, ''))
}
