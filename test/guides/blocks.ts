/**
 * The guides as readers see them: fenced blocks with lines to paste, and the output that the guides show.
 *
 * A block of `sh` is run as it is, in the guide's order. A comment right before it changes that:
 *
 *     <!-- guide: not run: REASON -->                            only its names are checked
 *     <!-- guide: compose -->                                    the same
 *     <!-- guide: needs PyPI -->                                 run if Python can install packages
 *     <!-- guide: while it is stopped -->                        the service is stopped before, and started again after
 *     <!-- guide: runs until interrupted, and says: SIGN -->     continues in the background once it has printed SIGN
 *     <!-- guide: distributed -->                                run against Kafka, a ClickHouse server, Redis and a registry
 *
 * `distributed` may come before another one, with a comma. A block of `json` or `text` that follows is the output of the lines
 * (shown.ts); `<!-- guide: for example -->` before it says that only the form is the same.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The operator's guide: a page for a task. */
export const operatorGuides = (
  [
    'try',
    'run',
    'deploy',
    'portal',
    'watch',
    'rejects',
    'rebuild',
    'erase',
    'restore',
    'grow',
    'upgrade',
  ] as const
).map(page => `deploy/${page}.md` as const)

/** The README first, because readers see it first. */
export const guides = [
  'README.md',
  'contracts/api/README.md',
  'contracts/tables/README.md',
  'contracts/events/README.md',
  'contracts/events/from-a-database.md',
  'deploy/README.md',
  ...operatorGuides,
] as const

export interface Fence {
  language: string
  text: string
  /** Line number in the file, from 1. */
  line: number
  /** The text of the comment before it; empty if there is none. */
  mark: string
}

export type How =
  | { kind: 'run' | 'pypi' | 'stopped' | 'compose' }
  | { kind: 'background'; sign: string }
  | { kind: 'not run'; reason: string }

export interface Block {
  guide: string
  line: number
  text: string
  how: How
  isDistributed: boolean
  shown: { language: 'json' | 'text'; text: string; isExample: boolean } | undefined
}

export function readGuide(guide: string): string {
  return readFileSync(root + guide, 'utf8')
}

/** All fenced blocks of a text. Throws on a fence that does not end, and on a guide comment without a fence after it. */
export function fencesOf(markdown: string): Fence[] {
  const fences: Fence[] = []
  let open: Fence | undefined
  let mark = ''
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open) {
      if (line === '```') {
        fences.push(open)
        open = undefined
      } else open.text += `${line}\n`
      continue
    }
    const fence = /^```(\w*)$/.exec(line)
    if (fence) open = { language: fence[1] ?? '', text: '', line: index + 1, mark }
    else if (mark !== '') throw new Error(`line ${index + 1}: no block follows the comment "${mark}"`)
    mark = /^<!-- guide: (.*) -->$/.exec(line)?.[1] ?? ''
  }
  if (open) throw new Error(`line ${open.line}: the block does not end`)
  return fences
}

/** The blocks of lines to paste, each with the output that the guide shows. */
export function blocksOf(guide: string): Block[] {
  const markdown = readGuide(guide)
  const lines = markdown.split('\n')
  const fences = fencesOf(markdown)
  return fences.flatMap((fence, index) => {
    if (fence.language !== 'sh') return []
    const next = fences[index + 1]
    const isNext = next && isRightAfter(lines, fence, next)
    return [
      {
        guide,
        line: fence.line,
        text: fence.text,
        ...readMark(fence),
        shown:
          isNext && (next.language === 'json' || next.language === 'text')
            ? { language: next.language, text: next.text, isExample: next.mark === 'for example' }
            : undefined,
      },
    ]
  })
}

/** Whether there are only blank lines and a comment between them. */
function isRightAfter(lines: readonly string[], fence: Fence, next: Fence): boolean {
  const end = fence.line + fence.text.split('\n').length
  return lines.slice(end, next.line - 1).every(line => line === '' || line.startsWith('<!-- guide: '))
}

function readMark({ mark, line }: Fence): Pick<Block, 'how' | 'isDistributed'> {
  const isDistributed = mark === 'distributed' || mark.startsWith('distributed, ')
  const rest = mark.replace(/^distributed(, )?/, '')
  const reason = /^not run: (.+)$/.exec(rest)?.[1]
  const sign = /^runs until interrupted, and says: (.+)$/.exec(rest)?.[1]
  if (reason !== undefined) return { isDistributed, how: { kind: 'not run', reason } }
  if (sign !== undefined) return { isDistributed, how: { kind: 'background', sign } }
  const kinds = {
    '': 'run',
    compose: 'compose',
    'needs PyPI': 'pypi',
    'while it is stopped': 'stopped',
  } as const
  const kind = kinds[rest as keyof typeof kinds]
  if (kind === undefined) throw new Error(`line ${line}: there is no such comment: "${mark}"`)
  return { isDistributed, how: { kind } }
}

/** The name of a block in a test: its place and its first words. */
export function nameOf({ line, text }: Block): string {
  const [first = ''] = text.split('\n')
  return `line ${line}: ${first.length > 70 ? `${first.slice(0, 70)}...` : first}`
}
