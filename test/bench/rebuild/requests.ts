/**
 * Clients of the rebuild bench: they alternate uncached lists and details at a steady rate, however long the answers take.
 *
 * The time of an answer counts from the moment its request was due, so that requests queued behind a slow one count in full.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Api, millisecondsOf, uncachedRequests } from '../lists/requests.ts'

export interface Answer {
  ms: number
  isAnswered: boolean
}

// The number of distinct lists. Details repeat after all campaigns were requested.
const listsMax = 50_000
// Far from one another in the table. Coprime to round numbers.
const stride = 7_919

/** Lists and details in turn. */
export function alternating(campaigns: number): Iterator<string> {
  const { filtered } = uncachedRequests({ campaigns, count: listsMax })
  return pathsOf(filtered, campaigns)
}

function* pathsOf(lists: readonly string[], campaigns: number): Generator<string> {
  for (let turn = 0; ; turn++) {
    yield lists[turn % listsMax] ?? ''
    yield `/projects/campaign-${(turn * stride) % campaigns}`
  }
}

/** All answers from the start of the work to its end, and what it results in. */
export async function askWhile<T>(
  api: Api,
  { paths, perSecond }: { paths: Iterator<string>; perSecond: number },
  work: () => Promise<T>,
): Promise<{ answers: Answer[]; result: T }> {
  const isOver = new AbortController()
  const asked: Promise<Answer>[] = []

  async function keepAsking(): Promise<void> {
    const startedAtMs = Date.now()
    while (!isOver.signal.aborted) {
      const dueAtMs = startedAtMs + (asked.length * 1_000) / perSecond
      const path: string = paths.next().value
      asked.push(answerOf(api, path, dueAtMs))
      const nextInMs = dueAtMs + 1_000 / perSecond - Date.now()
      await delay(Math.max(0, nextInMs), undefined, { signal: isOver.signal }).catch(() => {})
    }
  }

  const asking = keepAsking()
  const result = await work().finally(() => isOver.abort())
  await asking
  return { answers: await Promise.all(asked), result }
}

async function answerOf(api: Api, path: string, dueAtMs: number): Promise<Answer> {
  const isAnswered = await millisecondsOf(api, path).then(
    () => true,
    () => false,
  )
  return { ms: Date.now() - dueAtMs, isAnswered }
}
