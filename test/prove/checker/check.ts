/**
 * Decides from the log of a world whether every promise was kept, in a time that grows with the log as its length does. Pure: a log that
 * was kept gives the same verdict again.
 */
import { checkAnswers } from './answers.ts'
import { checkKeys } from './keys.ts'
import { checkLists } from './lists.ts'
import type { Answer, Log, Violation } from './log.ts'
import { checkRows } from './rows.ts'
import { shownBy, type World, worldOf } from './truth.ts'
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

// A history that is longer than this is no help, and takes long to shorten.
const answersMax = 2_000

/** The shortest history that still shows the violation: as few answers as possible, and what was said of the campaign if that is enough. */
export function shortest(log: Log, { rule, about, answers }: Violation): Log {
  const all = log.filter(entry => entry.kind === 'answer')
  const others = log.filter(entry => entry.kind !== 'answer')
  const ofCampaign = others.filter(
    entry => entry.kind !== 'said' || entry.events.some(({ key }) => key.split('/')[0] === about),
  )
  const near = all.filter(one => one.key === about || shownBy(one).some(({ id }) => id === about))
  const candidates = [answers, new Set([...near.slice(-answersMax), ...answers]), all.slice(-answersMax)]
  const shows = (history: Log) => check(history).some(one => one.rule === rule && one.about === about)
  const kept = [ofCampaign, others].find(said => candidates.some(some => shows([...said, ...some]))) ?? others
  let left: Answer[] = [...(candidates.find(some => shows([...kept, ...some])) ?? all)]
  // Halves, quarters and so on are left out as long as the rest shows it.
  for (let size = left.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at < left.length; ) {
      const rest = left.toSpliced(at, size)
      if (shows([...kept, ...rest])) left = rest
      else at += size
    }
  }
  return [...kept, ...left]
}
