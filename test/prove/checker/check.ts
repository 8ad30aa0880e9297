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
function checkBroken({ of }: World): Violation[] {
  return of('broken').flatMap(({ process, names }) =>
    names.map(about => ({ rule: 'invariants', about, text: `does not hold in ${process}`, answers: [] })),
  )
}

/** The shortest history that still shows the violation: all that was said and disturbed, and as few answers as possible. */
export function shortest(log: Log, { rule, about, answers }: Violation): Log {
  const [all, others] = [log.filter(isAnswer), log.filter(entry => !isAnswer(entry))]
  const shows = (some: readonly Answer[]) =>
    check([...others, ...some]).some(one => one.rule === rule && one.about === about)
  let left = shows(answers) ? answers : all
  // Halves, quarters and so on are left out as long as the rest shows it.
  for (let size = left.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at < left.length; ) {
      const rest = left.toSpliced(at, size)
      if (shows(rest)) left = rest
      else at += size
    }
  }
  return [...others, ...left]
}

function isAnswer(entry: Entry): entry is Answer {
  return entry.kind === 'answer'
}
