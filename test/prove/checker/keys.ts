/**
 * Keys. A revoked key is refused by each process that says it is ready two seconds after the ledger had the revocation: being ready means that
 * it has read the revocations within two seconds. While nothing is disturbed, it is refused after eight seconds whatever the process says.
 * Before its revocation, a process that has admitted it goes on to. In any 60 seconds a key has at most 120 requests admitted by all processes
 * together, or by each one while they do not share their counts. Only keys of the platform are admitted.
 */
import type { Answer, Violation } from './log.ts'
import type { World } from './truth.ts'

/** Within this time of its revocation a key dies. */
const deathMs = 2_000
/** Within this time each process has read it, if nothing is disturbed: a look may be slow on a busy machine, and is tried again. */
const readMsMax = 30_000
const admittedMax = 120
// A minute, less what the clocks of Redis and of the readers may differ by.
const windowMs = 59_900
const admitting = new Set([200, 304, 400, 404, 405])

export function checkKeys(world: World): Violation[] {
  return [...checkRevoked(world), ...checkLimits(world)]
}

function checkRevoked({ of, answers, isDisturbed }: World): Violation[] {
  const askedAt = new Map(of('revoked').map(one => [one.key, one.askedAt]))
  // By key and process: from then on the process knows.
  const known = new Map<string, number>()
  const admitted = new Map<string, Answer>()
  for (const { key, at } of of('revoked')) {
    for (const process of new Set(answers.map(one => one.process))) {
      const ready = of('ready').find(
        one => one.isReady && one.process === process && one.sentAt >= at + deathMs,
      )
      const disturbances = ['errors', 'silence'] as const
      const mayBeLate = disturbances.some(what => isDisturbed(what, at, at + readMsMax, process))
      const knownAt = Math.min(ready?.receivedAt ?? Infinity, mayBeLate ? Infinity : at + readMsMax)
      known.set(`${key} ${process}`, knownAt)
    }
  }
  return answers.flatMap((answer): Violation[] => {
    const { key, process, sentAt, receivedAt, status } = answer
    const name = `${key} ${process}`
    const before = admitted.get(name)
    if (status === 200 && !before) admitted.set(name, answer)
    const isRefused = key !== '' && status === 401 && before && before.receivedAt < sentAt
    const isEarly = receivedAt < (askedAt.get(key) ?? Infinity)
    const violation = { rule: 'revoked', about: key, answers: [answer] }
    if (isRefused && isEarly && !isDisturbed('silence', sentAt, receivedAt, process))
      return [{ ...violation, text: 'is refused, and is not revoked', answers: [before, answer] }]
    if (sentAt < (known.get(name) ?? Infinity) || !admitting.has(status)) return []
    const text = `is answered with ${status} by a process that had to know its revocation`
    return [{ ...violation, text }]
  })
}

function checkLimits({ answers, isDisturbed }: World): Violation[] {
  const processes = new Set(answers.map(({ process }) => process)).size
  // A preflight is not counted.
  const admitted = answers.filter(({ key, status }) => key !== '' && admitting.has(status))
  return [...Map.groupBy(admitted, ({ key }) => key)].flatMap(([about, all]): Violation[] => {
    const bySending = all.toSorted((a, b) => a.sentAt - b.sentAt)
    let sent = 0
    for (const [n, first] of bySending.entries()) {
      const until = first.sentAt + windowMs
      while ((bySending[sent]?.sentAt ?? Infinity) <= until) sent++
      if (sent - n <= admittedMax) continue
      // Only what certainly lies between the two ends: sent after the first was, and answered within the minute.
      const sure = bySending.slice(n, sent).filter(({ receivedAt }) => receivedAt <= until)
      const last = sure[admittedMax]
      const isAlone = last && isDisturbed('limits', first.sentAt, last.receivedAt)
      if (sure.length <= (isAlone ? processes : 1) * admittedMax) continue
      const text = `had ${sure.length} requests admitted within ${windowMs} ms`
      return [{ rule: 'limit', about, text, answers: sure }]
    }
    return []
  })
}
