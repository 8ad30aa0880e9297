/**
 * Seeded traffic for as long as a suite lasts: campaigns that begin, change and end, duplicates, late events, and now and
 * then a record that is no event. It keeps account of what it has said, which is the truth that all else is held against.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { encodeState } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { chance, intBetween, pick, type Random } from '../../../services/demo/random.ts'
import type { EventWriter, NewRecord } from '../../../services/shared/event-log/port.ts'
import { newRecordOf, pledgeEvent } from '../sample-events.ts'
import { type CampaignHistory, createHistory, eventsOf, isPublic, pledgeKey } from './campaign-histories.ts'

export interface Traffic {
  start(): void
  /** Resolves when all that was said is in the log, and nothing is said until `resume`. */
  pause(): Promise<void>
  resume(): void
  /** Ends it, without waiting for a log that is away. */
  stop(): Promise<void>
  /** Says this now; resolves when it is in the log. */
  say(events: readonly ChangeEvent[]): Promise<void>
  /** Appends so many records that are no events; resolves when they are in the log. */
  poison(count: number): Promise<void>
  /** A campaign that is public at first and at last, of which nothing is said but what the caller says. */
  newPublicHistory(): CampaignHistory
  history(id: string): CampaignHistory | undefined
  histories(): Iterable<CampaignHistory>
  /** How many of an entity's states may have been seen by now; by key, of the campaign or the pledge. */
  said(key: string): number
  /** All that was said, in order. */
  events(): readonly ChangeEvent[]
  /** The values of all records that are no events. */
  poisoned(): readonly Buffer[]
  /** Records that were appended, noise included. */
  records(): number
}

const activeMax = 40
const portionRecords = 30
const portionMs = 150
const noiseShare = 0.15
const recentMax = 500
const retryMs = 250

/** What the log says while it is away is no news: it is told again until the log takes it. */
export function createTraffic(random: Random, writer: EventWriter): Traffic {
  const histories = new Map<string, CampaignHistory>()
  const said = new Map<string, number>()
  const events: ChangeEvent[] = []
  const poisonValues: Buffer[] = []
  const active: ChangeEvent[][] = []
  const stopping = new AbortController()
  let records = 0
  let appending: Promise<void> = Promise.resolve()
  let running: Promise<void> = Promise.resolve()
  let portion: Promise<void> = Promise.resolve()
  /** Resolved unless it is paused. */
  let resumed = Promise.withResolvers<void>()
  let isPaused = false
  resumed.resolve()

  function newHistory(): CampaignHistory {
    const history = createHistory(random, histories.size)
    histories.set(history.id, history)
    return history
  }

  function nextEvent(): ChangeEvent {
    if (events.length > 0 && chance(random, noiseShare)) return pick(random, events.slice(-recentMax))
    while (active.length < activeMax) active.push(eventsOf(newHistory(), random))
    const at = intBetween(random, 0, active.length - 1)
    const event = active[at]?.shift()
    if (active[at]?.length === 0) active.splice(at, 1)
    if (!event) throw new Error('an active campaign has nothing to say')
    return event
  }

  /** Before it is appended: from the moment of the append on, it may be seen. */
  function note(event: ChangeEvent): void {
    const states = statesOf(event)
    const count = 1 + states.indexOf(event.data)
    said.set(event.key, Math.max(said.get(event.key) ?? 0, count))
    events.push(event)
  }

  function statesOf(event: ChangeEvent): readonly ChangeEvent['data'][] {
    const [campaignId = '', pledge] = event.key.split('/')
    const history = event.type === 'api-key' ? undefined : histories.get(campaignId)
    return (
      (pledge === undefined ? history?.states : history?.pledges[Number(pledge.slice(1))]) ?? [event.data]
    )
  }

  function newPoison(): NewRecord {
    const n = poisonValues.length
    // Bytes that are nothing, and an event that breaks a rule.
    const broken = pledgeEvent({ campaign_id: `poison-${n}`, pledge_id: 'p', amount_minor: -1 - n })
    const value =
      n % 2 === 0 || broken.type !== 'pledge' || broken.data === null
        ? Buffer.from(`no event ${n}`)
        : encodeState({ type: 'pledge', data: broken.data })
    poisonValues.push(value)
    // A key of its own each: a compacted topic keeps one record a key.
    return { topic: 'pledges', key: Buffer.from(`poison-${n}/p`), value }
  }

  /** In order, and again until the log takes it. */
  function append(batch: readonly NewRecord[]): Promise<void> {
    records += batch.length
    appending = appending.then(async () => {
      while (!stopping.signal.aborted) {
        try {
          return await writer.append(batch)
        } catch {
          await delay(retryMs)
        }
      }
    })
    return appending
  }

  function say(batch: readonly ChangeEvent[]): Promise<void> {
    for (const event of batch) note(event)
    return append(batch.map(newRecordOf))
  }

  async function sayPortion(): Promise<void> {
    await say(Array.from({ length: portionRecords }, nextEvent))
    if (chance(random, 0.2)) await append([newPoison()])
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await resumed.promise
      if (stopping.signal.aborted) return
      portion = sayPortion()
      await portion
      await delay(portionMs)
    }
  }

  return {
    start() {
      running = run()
    },
    async pause() {
      if (!isPaused) resumed = Promise.withResolvers<void>()
      isPaused = true
      await portion
      await appending
    },
    resume() {
      isPaused = false
      resumed.resolve()
    },
    async stop() {
      stopping.abort()
      resumed.resolve()
      await running
    },
    say,
    poison: count => append(Array.from({ length: count }, newPoison)),
    newPublicHistory() {
      for (;;) {
        const history = newHistory()
        if ([history.states.at(0), history.states.at(-1)].every(isPublic)) return history
      }
    },
    history: id => histories.get(id),
    histories: () => histories.values(),
    said: key => said.get(key) ?? 0,
    events: () => events,
    poisoned: () => poisonValues,
    records: () => records,
  }
}

/** How many states of the campaign, and of the pledge at each place, may have been seen by now. */
export function saidOf(traffic: Pick<Traffic, 'said'>, { id, pledges }: CampaignHistory): number[] {
  return [traffic.said(id), ...pledges.map((_, place) => traffic.said(pledgeKey(id, place)))]
}
