import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { currentStateReader, unframe } from '../../../contracts/events/codec.ts'
import { type ChangeEvent, eventTypeOf, isChangeTopic, keyOf } from '../../../contracts/events/event.ts'
import { appendDemo, type DemoProgress, runTrickle } from '../../../services/demo/load-demo.ts'
import { demoEvents } from '../../../services/demo/platform.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter, LogRecord } from '../../../services/log/port.ts'
import { readModelOf } from '../../support/model.ts'

const now = Date.UTC(2026, 10, 20, 12)
const demo = { seed: 7, now, campaigns: 60 }

let directory: string
let writer: EventWriter
let reader: EventReader

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'demo-'))
  const path = join(directory, 'journal.sqlite')
  writer = await openJournalWriter(path)
  reader = await openJournalReader(path, { consumer: 'test' })
})

afterEach(async () => {
  await reader.close()
  await writer.close()
  await rm(directory, { recursive: true, force: true })
})

async function waiting(): Promise<number> {
  const lag = await reader.lag()
  return lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
}

/** Reads so many records of the log, in its order. */
async function recordsOf(count: number): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  const bounds = { recordsMax: 10_000, bytesMax: 1 << 26, waitMsMax: 1_000 }
  while (records.length < count) {
    const delivery = await reader.poll(bounds, new AbortController().signal)
    if (delivery.records.length === 0) break
    records.push(...delivery.records)
  }
  return records
}

function decode({ topic, key, value }: LogRecord): ChangeEvent {
  const unframed = value && unframe(value)
  if (!unframed || !('avroBinary' in unframed) || !isChangeTopic(topic)) throw new Error('not a change event')
  const type = eventTypeOf[topic]
  const data = currentStateReader(type)(unframed.avroBinary)
  return { type, key: Buffer.from(key ?? []).toString(), data } as ChangeEvent
}

describe('loading the demo', () => {
  test('what is in the log is the platform’s history, under its keys and topics', async () => {
    const { appended } = await appendDemo({ writer, ...demo })
    const events = [...demoEvents(demo)]
    expect(appended).toBe(events.length)
    const records = await recordsOf(appended)
    expect(records).toHaveLength(appended)
    const expected = readModelOf(events.map(event => ({ ...event, key: keyOf(event) })))
    const actual = readModelOf(records.map(decode))
    expect(actual.platform).toEqual(expected.platform)
    expect(new Map(actual.campaigns)).toEqual(new Map(expected.campaigns))
  })

  test('progress only grows, and ends with everything', async () => {
    const steps: DemoProgress[] = []
    const { appended } = await appendDemo({ writer, ...demo, onProgress: step => steps.push(step) })
    expect(steps.length).toBeGreaterThan(2)
    expect(steps.at(-1)).toEqual({ events: appended, campaigns: 60, campaignsTotal: 60 })
    const counts = steps.map(({ events }) => events)
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
  })

  test('a history that was cut off and appended anew says the same', async () => {
    const stop = new AbortController()
    const cutOff = appendDemo({
      writer,
      ...demo,
      signal: stop.signal,
      onProgress: () => stop.abort(new Error('cut off')),
    })
    await expect(cutOff).rejects.toThrow('cut off')
    const before = await waiting()
    expect(before).toBeGreaterThan(0)
    const { appended } = await appendDemo({ writer, ...demo })
    const records = await recordsOf(before + appended)
    expect(records).toHaveLength(before + appended)
    const expected = readModelOf([...demoEvents(demo)].map(event => ({ ...event, key: keyOf(event) })))
    expect(readModelOf(records.map(decode)).platform).toEqual(expected.platform)
  })
})

describe('running the trickle', () => {
  const run = { seed: demo.seed, campaigns: demo.campaigns, loadedAt: now, intervalMs: 2 }

  test('it appends batch after batch as the clock goes on, until it is aborted', async () => {
    const stop = new AbortController()
    let clock = now
    const running = runTrickle({
      ...run,
      writer,
      signal: stop.signal,
      now: () => {
        clock += 1_000
        if (clock === now + 50_000) stop.abort()
        return clock
      },
    })
    await expect(running).resolves.toBeUndefined()
    expect(clock).toBe(now + 50_000)
    expect(await waiting()).toBeGreaterThan(20)
  })

  test('an abort ends it at once, in the middle of a long wait and before the first batch', async () => {
    const stop = new AbortController()
    const running = runTrickle({
      ...run,
      writer,
      intervalMs: 2 ** 31 - 1,
      now: () => now,
      signal: stop.signal,
    })
    stop.abort()
    await expect(running).resolves.toBeUndefined()
    await expect(
      runTrickle({ ...run, writer, now: () => now, signal: AbortSignal.abort() }),
    ).resolves.toBeUndefined()
    expect(await waiting()).toBe(0)
  })

  test('what the log refuses reaches the caller', async () => {
    await writer.close()
    let clock = now
    const running = runTrickle({
      ...run,
      writer,
      now: () => {
        clock += 60_000
        return clock
      },
      signal: new AbortController().signal,
    })
    await expect(running).rejects.toThrow()
  })
})
