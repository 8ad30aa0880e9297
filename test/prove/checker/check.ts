/**
 * Decides from the log of a world whether every promise was kept, in a time that grows with the log as its length does. Pure: a log that
 * was kept gives the same verdict again.
 */
import { checkAnswers } from './answers.ts'
import { checkKeys } from './keys.ts'
import { checkLists } from './lists.ts'
import type { Answer, Entry, Log, Violation } from './log.ts'
import { checkRows } from './rows.ts'
import { type World, worldOf } from './truth.ts'
import { checkWhole } from './whole.ts'

export function check(log: Log): Violation[] {
  const world = worldOf(log)
  return [checkAnswers, checkRows, checkLists, checkKeys, checkWhole, checkBroken].flatMap(rule =>
    rule(world),
  )
}

/** Every assertion of every process held, to its end. */
function checkBroken({ log }: World): Violation[] {
  return log.entries.flatMap(entry => {
    if (entry.kind !== 'broken') return []
    const text = `does not hold in ${entry.process}`
    return entry.names.map(name => ({ rule: 'invariants', about: name, text, answers: [] }))
  })
}

// A history that is longer than this is no help, and takes long to shorten.
const answersMax = 2_000

/** The shortest history that still shows the violation: what was said of the campaign, and as few answers as possible. */
export function shortest(log: Log, { rule, about, answers }: Violation): Log {
  const isAbout = ({ id }: { id: string }) => id === about
  const mentions = (answer: Answer) =>
    answer.key === about ||
    answer.removals?.some(isAbout) ||
    answer.rows?.some(n => isAbout(log.rows[n] as { id: string }))
  const others = log.entries.filter(entry => entry.kind !== 'answer')
  const kept = others.filter(
    entry => entry.kind !== 'said' || entry.events.some(({ key }) => key.split('/')[0] === about),
  )
  const near = log.entries.filter(
    (entry): entry is Answer =>
      entry.kind === 'answer' && !answers.includes(entry) && Boolean(mentions(entry)),
  )
  const shows = (said: readonly Entry[], some: readonly Answer[]) =>
    check({ ...log, entries: [...said, ...some] }).some(one => one.rule === rule && one.about === about)
  const every = log.entries.filter(entry => entry.kind === 'answer').slice(-answersMax)
  const candidates = [answers, [...answers, ...near.slice(-answersMax)], every]
  const said = candidates.some(some => shows(kept, some)) ? kept : others
  let left: readonly Answer[] = candidates.find(some => shows(said, some)) ?? every
  // Halves, quarters and so on are left out as long as the rest shows it.
  for (let size = left.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at < left.length; ) {
      const rest = left.toSpliced(at, size)
      if (shows(said, rest)) left = rest
      else at += size
    }
  }
  return { rows: log.rows, entries: [...said, ...left] }
}
