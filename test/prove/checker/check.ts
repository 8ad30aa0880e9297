/**
 * Decides from the log of a world whether every promise was kept, in a time that grows with the log as its length does. Pure: a log that
 * was kept gives the same verdict again.
 */
import { checkAnswers } from './answers.ts'
import { checkKeys } from './keys.ts'
import { checkLists } from './lists.ts'
import type { Log, Violation } from './log.ts'
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
