import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { encodeState } from '../../../contracts/events/codec.ts'
import { type ChangeEvent, keyOf, type StateEvent } from '../../../contracts/events/event.ts'
import { faultOf } from '../../../contracts/events/rules.ts'
import { appendDemo } from '../../../services/demo/load-demo.ts'
import { sampleEvents } from '../../../services/demo/sample.ts'
import { demoTrickle } from '../../../services/demo/trickle.ts'
import { openUnkindDoor, unkindEvents } from '../../../services/demo/unkind.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import { randomOf } from '../../support/runner/random.ts'

const second = 1_000
const hour = 3_600 * second
const day = 24 * hour
const endMs = Date.UTC(2026, 10, 20, 12)
const all = [...sampleEvents(endMs)]
const history = all.filter(({ data }) => data.changed_at <= endMs)
const campaignsOf = (events: StateEvent[]) =>
  events.flatMap(event => (event.type === 'campaign' ? [event.data] : []))
const toChange = (event: StateEvent): ChangeEvent => ({ ...event, key: keyOf(event) })

/** The events of one run that is awake from `from` to `to` and looks every `everyMs`. */
function runOf({ from, to, everyMs }: { from: number; to: number; everyMs: number }, seed = 'run') {
  const trickle = demoTrickle({ endMs, random: randomOf(seed) })
  const events: StateEvent[] = []
  for (let now = from; now <= to; now += everyMs) events.push(...trickle.next(now))
  return events
}

function versionsOutOfOrder(events: StateEvent[]): StateEvent[] {
  const versions = new Map<string, number>()
  return events.filter(event => {
    const before = versions.get(keyOf(event)) ?? 0
    const version = Number(event.data.version)
    versions.set(keyOf(event), version)
    return !Number.isSafeInteger(version) || version <= before
  })
}

describe('the recorded sample', () => {
  test('every event keeps the rules of the contract, in order of time, and each entity’s versions grow', () => {
    expect(all.flatMap(event => faultOf(toChange(event)) ?? [])).toEqual([])
    for (const event of all) encodeState(event)
    const times = all.map(({ data }) => data.changed_at)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(versionsOutOfOrder(all)).toEqual([])
  })
})

describe('the trickle', () => {
  test('about one event a second keeps the rules of the contract, with versions that grow', () => {
    const events = runOf({ from: endMs + second, to: endMs + hour, everyMs: second })
    expect(events.length).toBeGreaterThan(0.5 * 3_600)
    expect(events.length).toBeLessThan(2 * 3_600)
    expect(events.flatMap(event => faultOf(toChange(event)) ?? [])).toEqual([])
    expect(versionsOutOfOrder([...history, ...events])).toEqual([])
  })

  test('restarts, at any time and after any pause, collide with no run before', () => {
    const runs = [
      runOf({ from: endMs, to: endMs + 2 * day, everyMs: hour }, 'first'),
      runOf({ from: endMs + 2 * day + 1, to: endMs + 5 * day, everyMs: 40 * 60 * second }, 'second'),
      runOf({ from: endMs + 20 * day, to: endMs + 40 * day, everyMs: hour }, 'third'),
    ]
    const contents = new Map<string, string>()
    const collisions = runs.flat().filter(event => {
      const name = `${keyOf(event)} ${event.data.version}`
      const text = JSON.stringify(event)
      const isOther = (contents.get(name) ?? text) !== text
      contents.set(name, text)
      return isOther
    })
    expect(collisions).toEqual([])
  })
})

test('the history is appended in batches, and the same one again after an interruption', async () => {
  const records: NewRecord[] = []
  const append = async (batch: readonly NewRecord[]) => void records.push(...batch)
  const writer = { append, close: async () => {} }
  await appendDemo(writer, endMs)
  const first = records.splice(0)
  expect(first).toHaveLength(history.length)
  await appendDemo(writer, endMs)
  expect(records).toEqual(first)
})

describe('the unkind demo', () => {
  test('keeps the rules of the contract: campaigns leave, come back and change, and events are repeated', () => {
    const unkind = unkindEvents({ endMs, random: randomOf('unkind') })
    const events = Array.from({ length: 600 }, (_, n) => unkind.next(endMs + n * second)).flat()
    expect(events.flatMap(event => faultOf(toChange(event)) ?? [])).toEqual([])
    const repeated = new Set(versionsOutOfOrder(events))
    expect(repeated.size).toBeGreaterThan(0)
    const statuses = Map.groupBy(campaignsOf(events), ({ campaign_id }) => campaign_id)
    const hasReturned = [...statuses.values()].some(states =>
      / SUSPENDED,(?!SUSPENDED)/.test(` ${states.map(({ status }) => status)}`),
    )
    expect(hasReturned).toBe(true)
  })

  test('its door passes on what it does not refuse, and goes nowhere else', async () => {
    const api = createServer((request, response) =>
      response.end(`${request.url} ${request.headers['x-api-key']}`),
    )
    await new Promise<void>(resolve => api.listen(0, '127.0.0.1', resolve))
    const stop = new AbortController()
    const runtime = { random: randomOf('door'), sleep: async () => undefined }
    const apiUrl = `http://127.0.0.1:${(api.address() as AddressInfo).port}/api/v1`
    const url = await openUnkindDoor(apiUrl, runtime, stop.signal)
    try {
      const ask = async (path: string) => {
        const response = await fetch(url + path, { headers: { 'x-api-key': 'k' } }).catch(() => undefined)
        return response && { status: response.status, text: await response.text() }
      }
      const answers = await Promise.all(Array.from({ length: 200 }, () => ask('/projects?limit=1')))
      const statuses = new Set(answers.map(answer => answer?.status))
      expect(statuses).toEqual(new Set([200, 429, 500, undefined]))
      const passed = answers.filter(answer => answer?.status === 200)
      expect(new Set(passed.map(answer => answer?.text))).toEqual(new Set(['/api/v1/projects?limit=1 k']))
      const elsewhere = await Promise.all(
        Array.from({ length: 5 }, () => fetch(`${new URL(url).origin}//example.com/`).catch(() => undefined)),
      )
      for (const response of elsewhere) expect(response?.ok ?? false).toBe(false)
    } finally {
      stop.abort()
      api.close()
    }
  })
})
