/**
 * Seeded traffic for as long as a suite lasts: campaigns that begin, change and end, duplicates, late events, and sometimes a
 * record that is not an event. It records everything that it has sent. That is the truth that the results are compared with.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { encodeState } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { EventWriter, Header, NewRecord } from '../../../services/log/port.ts'
import { newRecordOf, pledgeEvent } from '../events/sample-events.ts'
import { chance, intBetween, pick, type Random } from '../runner/random.ts'
import { type CampaignHistory, createHistory, eventsOf } from './campaign-histories.ts'

export type Traffic = ReturnType<typeof createTraffic>

const activeMax = 40
const portionRecords = 30
const portionMs = 150
const noiseShare = 0.15
const recentMax = 500
const retryMs = 250

// Every object has members of these names.
const poisonHeaders = ['toString', '__proto__'].map((name): Header => [name, Buffer.from(name)])

export interface TrafficOptions {
  random: Random
  writer: EventWriter
  /** Called before the events are appended: they may be visible from that moment on. */
  onSaid?: (events: readonly ChangeEvent[]) => void
  /** How many times slower it is. Default: 1. */
  slowness?: number | undefined
}

/** Sends again what an unavailable log did not accept, until it does. */
export function createTraffic({ random, writer, onSaid, slowness = 1 }: TrafficOptions) {
  const histories = new Map<string, CampaignHistory>()
  const events: ChangeEvent[] = []
  const poisonValues: Buffer[] = []
  const active: ChangeEvent[][] = []
  const stopping = new AbortController()
  let records = 0
  let appending: Promise<void> = Promise.resolve()
  let running: Promise<void> = Promise.resolve()
  let portion: Promise<void> = Promise.resolve()
  /** Resolved unless the traffic is paused. */
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

  function newPoison(): NewRecord {
    const n = poisonValues.length
    // Bytes that mean nothing, and an event that breaks a rule.
    const broken = pledgeEvent({ campaign_id: `poison-${n}`, pledge_id: 'p', amount_minor: -1 - n })
    const value =
      n % 2 === 0 || broken.type !== 'pledge' || broken.data === null
        ? Buffer.from(`no event ${n}`)
        : encodeState({ type: 'pledge', data: broken.data })
    poisonValues.push(value)
    // Each with its own key, because a compacted topic keeps one record per key.
    return { topic: 'pledges', key: Buffer.from(`poison-${n}/p`), value, headers: poisonHeaders }
  }

  /** In order. Repeats until the log accepts it. */
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
    events.push(...batch)
    onSaid?.(batch)
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
      await delay(slowness * portionMs)
    }
  }

  return {
    start(): void {
      running = run()
    },
    /** Resolves when everything that was sent is in the log. Sends nothing until `resume`. */
    async pause(): Promise<void> {
      if (!isPaused) resumed = Promise.withResolvers<void>()
      isPaused = true
      await portion
      await appending
    },
    resume(): void {
      isPaused = false
      resumed.resolve()
    },
    /** Ends the traffic, without waiting for an unavailable log. */
    async stop(): Promise<void> {
      stopping.abort()
      resumed.resolve()
      await running
    },
    /** Sends this now. Resolves when it is in the log. */
    say,
    /** Appends this many records that are not events. Resolves when they are in the log. */
    poison: (count: number) => append(Array.from({ length: count }, newPoison)),
    histories: () => histories.values(),
    /** Everything that was sent, in order. */
    events: (): readonly ChangeEvent[] => events,
    /** The values of all records that are not events. */
    poisoned: (): readonly Buffer[] => poisonValues,
    /** Records that were appended, including those that are not events. */
    records: () => records,
  }
}
