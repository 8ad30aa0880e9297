/**
 * Keys. A revoked key is refused by each process that says it is ready two seconds after the ledger had the revocation: being ready means that
 * it has read the revocations within two seconds. Before, a process that has admitted it goes on to. In any 60 seconds a key has at most 120 requests admitted by all processes
 * together, or by each one while they do not share their counts. Only keys of the platform are admitted.
 */
import type { Answer, Entry, Violation } from './log.ts'
import type { World } from './truth.ts'

/** Within this time of its revocation a key dies. */
const deathMs = 2_000
const admittedMax = 120
// A minute, less what the clocks of Redis and of the readers may differ by.
const windowMs = 59_900
const admitting = new Set([200, 304, 400, 404, 405])

export function checkKeys(world: World): Violation[] {
  return [...checkRevoked(world), ...checkLimits(world)]
}

function checkRevoked({ log, answers, isDisturbed }: World): Violation[] {
  const revokedAt = new Map<string, number>()
  const askedAt = new Map<string, number>()
  const admitted = new Map<string, Answer>()
  // By key and process: from then on the process knows.
  const knownAt = new Map<string, number>()
  const readies = new Map<number, Extract<Entry, { kind: 'ready' }>[]>()
  for (const entry of log.entries) {
    if (entry.kind === 'revoked') {
      revokedAt.set(entry.key, entry.at)
      askedAt.set(entry.key, entry.askedAt)
    }
    if (entry.kind === 'ready' && entry.isReady)
      readies.set(entry.process, [...(readies.get(entry.process) ?? []), entry])
  }
  for (const [key, at] of revokedAt) {
    for (const [process, all] of readies) {
      const first = all.find(({ sentAt }) => sentAt >= at + deathMs)
      if (first) knownAt.set(`${key} ${process}`, first.receivedAt)
    }
  }
  return answers.flatMap((answer): Violation[] => {
    const { key, process, sentAt, receivedAt, status } = answer
    const name = `${key} ${process}`
    const before = admitted.get(name)
    if (status === 200 && !before) admitted.set(name, answer)
    const isEarly =
      key !== '' && status === 401 && before && receivedAt < (askedAt.get(key) ?? Number.POSITIVE_INFINITY)
    if (isEarly && before.receivedAt < sentAt && !isDisturbed('silence', sentAt, receivedAt, process))
      return [
        { rule: 'revoked', about: key, text: 'is refused, and is not revoked', answers: [before, answer] },
      ]
    if (sentAt < (knownAt.get(name) ?? Number.POSITIVE_INFINITY) || !admitting.has(status)) return []
    const text = `is answered with ${status} more than ${deathMs} ms after its revocation, by a process that is ready`
    return [{ rule: 'revoked', about: key, text, answers: [answer] }]
  })
}

function checkLimits({ answers, isDisturbed }: World): Violation[] {
  const processes = new Set(answers.map(({ process }) => process)).size
  // A preflight is not counted.
  const admitted = answers.filter(({ key, status }) => key !== '' && admitting.has(status))
  return [...Map.groupBy(admitted, ({ key }) => key)].flatMap(([key, all]): Violation[] => {
    const bySending = all.toSorted((a, b) => a.sentAt - b.sentAt)
    const within: Answer[] = []
    for (const answer of bySending) {
      // Only what certainly lies between the two ends: sent after the first was, and answered within the minute.
      within.push(answer)
      while (within[0] && answer.receivedAt - within[0].sentAt > windowMs) within.shift()
      const first = within[0]
      if (!first) continue
      const max = isDisturbed('limits', first.sentAt, answer.receivedAt)
        ? processes * admittedMax
        : admittedMax
      const sure =
        within.length > max ? within.filter(({ receivedAt }) => receivedAt <= first.sentAt + windowMs) : []
      if (sure.length > max)
        return [
          {
            rule: 'limit',
            about: key,
            text: `had ${sure.length} requests admitted within ${windowMs} ms`,
            answers: sure,
          },
        ]
    }
    return []
  })
}
