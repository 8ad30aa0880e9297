/**
 * Clients of the rebuild bench, in a separate process: they alternate uncached lists and details at a steady rate, however long
 * the answers take, from `start` to `stop`.
 *
 * The time of an answer counts from the moment its request was due, so that requests queued behind a slow one count in full.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { benchInput, serveBench } from '../bench-process.ts'
import { type Api, millisecondsOf, uncachedRequests } from '../lists/requests.ts'

export interface RebuildRequestsInput extends Api {
  campaigns: number
  perSecond: number
}

export type RebuildRequestsOrder = { order: 'start' } | { order: 'stop' }

export interface Answer {
  ms: number
  isAnswered: boolean
}

export interface RebuildRequestsResult {
  answers: Answer[]
}

// The number of distinct lists. Details repeat after all campaigns were requested.
const listsMax = 50_000
const underWayMax = 500
// Far from one another in the table. Coprime to round numbers.
const stride = 7_919

const { campaigns, perSecond, ...api } = benchInput<RebuildRequestsInput>()
const { filtered: lists } = uncachedRequests({ campaigns, count: listsMax })
let asked = 0
let stop = async (): Promise<Answer[]> => []

serveBench({
  ready: {},
  async answer({ order }: RebuildRequestsOrder): Promise<RebuildRequestsResult> {
    if (order === 'stop') return { answers: await stop() }
    stop = start()
    return { answers: [] }
  },
})

function start(): () => Promise<Answer[]> {
  const isOver = new AbortController()
  const answers: Answer[] = []
  const underWay = new Set<Promise<void>>()

  async function keepAsking(): Promise<void> {
    const startedAtMs = Date.now()
    for (let sent = 0; ; sent++) {
      const dueAtMs = startedAtMs + (sent * 1_000) / perSecond
      await delay(Math.max(0, dueAtMs - Date.now()), undefined, { signal: isOver.signal }).catch(() => {})
      if (isOver.signal.aborted) return
      if (underWay.size >= underWayMax) throw new Error(`${underWayMax} requests are in flight`)
      const done = ask(dueAtMs).then(answer => {
        answers.push(answer)
        underWay.delete(done)
      })
      underWay.add(done)
    }
  }

  const asking = keepAsking()
  asking.catch(() => {})
  return async () => {
    isOver.abort()
    await asking
    await Promise.all(underWay)
    return answers
  }
}

async function ask(dueAtMs: number): Promise<Answer> {
  const number = asked++
  const turn = Math.floor(number / 2)
  const path = number % 2 === 0 ? lists[turn % listsMax] : `/projects/campaign-${(turn * stride) % campaigns}`
  const isAnswered = await millisecondsOf(api, path ?? '').then(
    () => true,
    () => false,
  )
  return { ms: Date.now() - dueAtMs, isAnswered }
}
