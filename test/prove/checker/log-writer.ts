/** Writes the small logs of the mutants by hand. */
import { createHash } from 'node:crypto'
import type { Project } from '../../../contracts/api/schemas.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { readModelOf } from '../../support/events/model.ts'
import { expectedProject } from '../../support/faults/api-projects.ts'
import type { Answer, Disturbed, Entry, Row } from './log.ts'

const start = Date.UTC(2026, 10, 1)
const iso = (at: number) => new Date(start + at).toISOString()
const pageOf = (total: number) => ({ total, limit: 100, offset: 0, has_more: false })

export type Writer = ReturnType<typeof createWriter>

/** A log that is written one entry after the other. Times are ms after the start. */
export function createWriter() {
  const log: Entry[] = []
  const add = (entry: Entry) => void log.push(entry)
  const answer = (at: number, more: Partial<Answer> = {}) =>
    add({
      ...{ kind: 'answer', reader: 'r', process: 0, key: 'k', path: '/projects?limit=100', expected: [200] },
      ...{ sentAt: start + at, receivedAt: start + at + 10, status: 200, ageMs: 0, rows: [] },
      ...more,
    })
  return {
    log,
    answer,
    /** The campaign as a list shows it. */
    row(events: readonly ChangeEvent[], stamp: number, change: Partial<Project> = {}): Row {
      const [reading] = readModelOf(events).campaigns.values()
      if (!reading) throw new Error('it is not public')
      return { ...expectedProject(reading), updated_at: iso(stamp), ...change }
    },
    say: (at: number, ...events: ChangeEvent[]) => add({ kind: 'said', at: start + at, events }),
    /** A whole list of one campaign at most, as of a moment. */
    list: (at: number, asOf: number, rows: Row[], more: Partial<Answer> = {}) =>
      answer(at, {
        ...{ asOf: start + asOf, snapshot: `s${at}`, rows, page: pageOf(rows.length) },
        ...(rows[0] && { digest: digestOf(rows[0]) }),
        ...more,
      }),
    removed: (at: number, asOf: number, stamps: number[]) =>
      answer(at, {
        ...{ path: '/removals?limit=100', asOf: start + asOf, snapshot: `r${at}` },
        removals: stamps.map(stamp => ({ id: 'c1', updated_at: iso(stamp) })),
        page: pageOf(stamps.length),
      }),
    disturb: (what: Disturbed['what'], from: number, to: number) =>
      add({ kind: 'disturbed', what, from: start + from, to: start + to }),
    quiet: (from: number, to: number) => add({ kind: 'quiet', from: start + from, to: start + to }),
    revoke: (at: number) => add({ kind: 'revoked', askedAt: start + at, at: start + at, key: 'k' }),
    ready: (at: number) =>
      add({ kind: 'ready', process: 0, sentAt: start + at, receivedAt: start + at + 10, isReady: true }),
    broken: (...names: string[]) => add({ kind: 'broken', process: 'query 1', names }),
    copy: (...rows: Row[]) => add({ kind: 'copy', mirror: 'r', rows }),
  }
}

/** Of a list of one campaign. */
export function digestOf({ id, updated_at }: Row): string {
  return `1-${createHash('sha256').update(`${id}|${updated_at}`).digest('hex').slice(0, 16)}`
}
