/** The rejects commands beside an embedded service: what they find, what they show, and what a retry does to the read model. */
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeState } from '../../../contracts/events/codec.ts'
import type { ChangeEvent, StateEvent } from '../../../contracts/events/event.ts'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { type EmbeddedService, startEmbeddedService } from '../../../services/embedded/service.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import type { Header, NewRecord } from '../../../services/log/port.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { runHere } from '../../support/deployment/run-here.ts'
import { makeDataDirectory } from '../../support/deployment/service-process.ts'
import { journalEnds } from '../../support/events/journal-ends.ts'
import { readModelOf } from '../../support/events/model.ts'
import {
  campaignEvent,
  newRecordOf,
  noEvent,
  pledgeEvent,
  smallWorld,
} from '../../support/events/sample-events.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import {
  keptRejects,
  placesAskedFor,
  placesOf,
  rejectsOf,
  startedAt,
  storeAt,
  type TimedReject,
} from '../../support/projector/reject-filters.ts'

let directory: ReturnType<typeof makeDataDirectory>
let journal: string
let service: EmbeddedService
/** It, until it is stopped. */
let started: EmbeddedService | undefined

// No test but one appends to the journal, so they share a service.
beforeAll(async () => {
  directory = makeDataDirectory()
  const files = openDataDirectory(directory.path)
  journal = files.journal
  const config = readConfig({})
  const logger = pino({ level: 'silent' })
  started = service = await startEmbeddedService({ directory: files, config, port: 0, opsPort: 0, logger })
}, 60_000)

afterAll(async () => {
  await stop()
  directory.remove()
})

async function stop(): Promise<void> {
  await started?.close()
  started = undefined
}

describe('rejects list', () => {
  const rejects = rejectsOf(2_000, 1)

  beforeEach(() => put(rejects))

  test('says how many there are of those that it shows', async () => {
    const { stdout } = await run('list', '--topic', 'pledges', '--reason', 'slug is', '--limit', '2')
    const expected = placesAskedFor(rejects, { topic: 'pledges', reasonPart: 'slug is' }).length
    expect(stdout).toContain(`2,000 rejects in all, 2,000 open, ${expected} as asked for, the latest 2\n`)
    expect(stdout.split('\n')).toHaveLength(4)
    expect(stdout).toMatch(/Z {2}pledges\/0\/\d+ {2}pledge key \d+ {2}slug is empty$/im)
  })

  test('by reason counts each, with its first and last time and a place that show knows', async () => {
    const { by_reason, matched } = await json<{ by_reason: Record<string, string>[]; matched: number }>(
      ...['list', '--by-reason', '--until', new Date(startedAt + 600_000).toISOString()],
    )
    const before = rejects.filter(({ rejectedAt }) => rejectedAt < startedAt + 600_000)
    expect(matched).toBe(before.length)
    expect(by_reason).toHaveLength(5)
    // The most frequent first.
    expect(by_reason.map(one => one.count)).toEqual(
      by_reason.map(one => one.count).toSorted((a, b) => Number(b) - Number(a)),
    )
    const unknown = by_reason.find(({ reason }) => reason === 'schema id 9 is unknown')
    const ofIt = before.filter(({ reason }) => reason === 'schema id 9 is unknown')
    expect(unknown).toEqual({
      reason: 'schema id 9 is unknown',
      count: ofIt.length,
      first: new Date(ofIt[0]?.rejectedAt ?? 0).toISOString(),
      last: new Date(ofIt.at(-1)?.rejectedAt ?? 0).toISOString(),
      example: expect.toBeOneOf(placesOf(ofIt)),
    })
    const shown = await json<{ reason: string }>('show', unknown?.example ?? '')
    expect(shown.reason).toBe('schema id 9 is unknown')
  })

  test('is refused with exit code 2 and its own usage if the call is wrong, and so are the other commands', async () => {
    const calls: [args: string[], message: string][] = [
      [['list', '--since', 'yesterday'], '--since takes a time'],
      [['list', '--dry-run'], '--dry-run'],
      [['show', 'pledges'], 'a PLACE is'],
      [['show', 'pledges/0/1', '--topic', 'pledges'], '--topic'],
      [['retry'], 'takes PLACEs, or --all-matching'],
      [['retry', 'pledges/0/1', '--all-matching'], 'takes PLACEs, or --all-matching'],
      [['retry', 'pledges/0/1', '--since', '2h'], 'a filter goes with --all-matching'],
      [['drop'], 'list, show, retry'],
    ]
    for (const [args, message] of calls) {
      const { code, stdout, stderr } = await run(...args)
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)])
      expect(stderr.match(/usage: pledgeview rejects/g)).toHaveLength(1)
    }
  })
})

describe('rejects show', () => {
  test('prints a record that breaks a rule with its state and the field that is at fault', async () => {
    const event = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', amount_minor: -5, backer_id: 'jane' })
    const value = encodeState(event as StateEvent)
    const headers = ['t-1', 't-2'].map((value): Header => ['toString', Buffer.from(value)])
    await put([
      reject({ ...newRecordOf(event), headers }, { offset: 7, reason: 'amount_minor -5 is negative' }),
    ])
    const shown = await json<object>('show', 'pledges/0/7')
    expect(shown).toMatchObject({
      ...{
        topic: 'pledges',
        partition: 0,
        offset: 7,
        type: 'pledge',
        cut: null,
        reason: 'amount_minor -5 is negative',
      },
      ...{ rejected_at: new Date(startedAt).toISOString(), appended_at: new Date(1_000).toISOString() },
      ...{ key_text: 'a/p', value_bytes: value.length, value_base64: value.toString('base64'), schema_id: 2 },
      headers: ['dC0x', 'dC0y'].map(value_base64 => ({ name: 'toString', value_base64 })),
      ...{ is_event_now: false, field: 'amount_minor', reason_now: 'amount_minor -5 is negative' },
      event: {
        type: 'pledge',
        data: { backer_id: 'jane', amount_minor: -5, changed_at: '2026-02-02T00:00:00.000Z' },
      },
    })
    const { stdout, stderr } = await run('show', 'pledges/0/7')
    for (const part of [
      '"a/p"',
      'entity    pledge a/p',
      'schema id 2',
      'toString: "t-1"',
      'field     amount_minor',
      '"jane"',
    ])
      expect(stdout).toContain(part)
    expect(stderr).toBe('')
  })

  test('prints what no decoder reads as bytes, and no escape of it reaches the terminal; and names a place that is not kept', async () => {
    const value = Buffer.from('\u001b[2Jno event')
    await put([
      reject(
        { topic: 'pledges', key: Buffer.from('\u001b[31m'), value },
        { offset: 8, reason: 'a \u001b[0m' },
      ),
    ])
    const { stdout } = await run('show', 'pledges/0/8')
    expect(stdout).toContain('\\u001b[2Jno event')
    expect(stdout).toContain('the first byte is 27, not 0 (Confluent framing)')
    expect(stdout).not.toContain('\u001b')
    expect((await run('list')).stdout).not.toContain('\u001b')
    const stderr = expect.stringContaining('pledges/0/9 is not a stored reject')
    expect(await run('show', 'pledges/0/9')).toMatchObject({ code: 1, stderr })
  })

  test('of a record that was cut says so, and a retry names its place and appends nothing: it might look like a deletion', async () => {
    const whole = newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }))
    const value = Buffer.concat([whole.value ?? Buffer.alloc(0), Buffer.alloc(5_000_000)])
    const long: Header = ['long', Buffer.alloc(1_100_000)]
    const noValue = { value: null, omittedValueBytes: value.length }
    const cut = [
      { value },
      { key: Buffer.alloc(70_000) },
      { headers: [long] },
      { omittedHeaders: 1_001 },
      noValue,
    ]
    await put(cut.map((part, n) => reject({ ...whole, ...part }, { offset: 6 + n, reason: 'trailing data' })))
    expect(await json('show', 'pledges/0/6')).toMatchObject({
      ...{ value_bytes: value.length, value_omitted: true, cut: { value_bytes: value.length } },
      reason_now: expect.stringContaining(`value: 4,194,304 of ${value.length.toLocaleString('en')} bytes`),
    })
    const { code, stdout } = await appendsNothing(() => run('retry', '--all-matching'))
    expect(code).toBe(1)
    const [, places = ''] = /have their producer append them again: (.*)/.exec(stdout) ?? []
    expect(new Set(places.split(', '))).toEqual(
      new Set([6, 7, 8, 9, 10].map(offset => `pledges/0/${offset}`)),
    )
  })
})

describe('rejects retry', () => {
  const late = campaignEvent({ campaign_id: 'late', title: 'Rejected once' })
  const pledge = pledgeEvent({ campaign_id: 'late', pledge_id: 'p' })
  const broken = newRecordOf(pledgeEvent({ campaign_id: 'late', pledge_id: 'q', amount_minor: -1 }))

  test('brings what is a valid event now into the read model, once, and leaves the rest in the rejects', async () => {
    await append(smallWorld().map(newRecordOf))
    await put([
      reject(newRecordOf(late), { offset: 101, reason: 'schema id 1 is unknown for a campaign' }),
      reject(newRecordOf(pledge), { offset: 102, reason: 'schema id 2 is unknown for a pledge' }),
      reject(noEvent, { offset: 103, reason: 'the first byte is 9' }),
      reject(broken, { offset: 104, reason: 'amount_minor -1 is negative' }),
    ])
    const dry = await json<object>('retry', '--all-matching', '--dry-run')
    expect(dry).toMatchObject({ dry_run: true, matched: 4, retried: 2, no_event: 2 })
    expect(await reading()).toEqual(expected(smallWorld()))

    const events = [...smallWorld(), late, pledge]
    const first = await json<{ by_reason: object[] }>('retry', '--all-matching')
    expect(first).toMatchObject({
      dry_run: false,
      matched: 4,
      retried: 2,
      no_event: 2,
      settled: 2,
      not_settled: 0,
    })
    expect(first.by_reason).toMatchObject([
      {
        reason: 'the first byte is …, not … (Confluent framing) and not { (JSON)',
        count: 1,
        example: 'pledges/0/103',
      },
      { reason: 'amount_minor … is negative', count: 1, example: 'pledges/0/104' },
    ])
    expect(await reading()).toEqual(expected(events))
    expect(await json('list')).toMatchObject({ total: 4, open: 2 })
    expect(await json('list', '--open')).toMatchObject({
      matched: 2,
      rejects: [{ settled_at: null }, { settled_at: null }],
    })
    // The record is read and rejected once more, by a projector that was killed before. It stays settled.
    await add([reject(newRecordOf(late), { offset: 101, reason: 'schema id 1 is unknown for a campaign' })])
    expect((await run('retry', '--all-matching')).stdout).toContain('0 were appended, of 2\n')
    expect(await json('retry', 'campaigns/0/101')).toMatchObject({ retried: 0, outdated: 1, settled: 1 })
    expect(await reading()).toEqual(expected(events))
    const kept = await keptRejects(service.model.tables, service.model.databases)
    expect(placesOf(kept).toSorted()).toEqual([
      'campaigns/0/101',
      'pledges/0/102',
      'pledges/0/103',
      'pledges/0/104',
    ])
  })

  test('settles what a projector whose clock is an hour ahead has rejected', async () => {
    await append([newRecordOf(late)])
    const rejectedAt = Date.now() + 3_600_000
    await put([
      { ...reject(newRecordOf(late), { offset: 105, reason: 'schema id 1 is unknown' }), rejectedAt },
    ])
    await service.model.whenDrained()
    expect(await json('retry', '--all-matching')).toMatchObject({ outdated: 1, settled: 1 })
  })

  test('ends with exit code 1 and appends nothing if nothing can be retried, and has nothing to do if nothing is found', async () => {
    await put([reject(noEvent, { offset: 1, reason: 'the first byte is 9' })])
    const { code, stdout } = await appendsNothing(() => run('retry', 'pledges/0/1', 'pledges/0/2'))
    expect(code).toBe(1)
    expect(stdout).toContain('0 were appended, of 1\n')
    expect(stdout).toContain('1 are not stored rejects: pledges/0/2')
    const ofNone = () => run('retry', '--all-matching', '--reason', 'other')
    expect(await appendsNothing(ofNone)).toMatchObject({ code: 0 })
  })

  /** What the views say once everything in the journal is projected. */
  async function reading() {
    await service.model.whenDrained()
    return readViews(service.model.tables, service.model.databases)
  }

  function expected(events: readonly ChangeEvent[]) {
    return expectedReading(readModelOf(events))
  }
})

test('rejects list and show work without a service, too', async () => {
  await put([reject(noEvent, { offset: 3, reason: 'the first byte is 9' })])
  await stop()
  expect(await json('list')).toMatchObject({ total: 1, rejects: [{ offset: 3 }] })
  expect(await json('show', 'pledges/0/3')).toMatchObject({ reason: 'the first byte is 9' })
})

function reject(record: NewRecord, { offset, reason }: { offset: number; reason: string }): TimedReject {
  return { record: { ...record, partition: 0, offset, appendedAt: 1_000 }, reason, rejectedAt: startedAt }
}

/** Puts rejects at their times, as a service puts those that it meets. There are no others then. */
async function put(rejects: readonly TimedReject[]): Promise<void> {
  const { tables, databases } = service.model
  await tables.run({ query: `TRUNCATE TABLE ${databases.base}.rejects` })
  await add(rejects)
}

function add(rejects: readonly TimedReject[]): Promise<void> {
  return storeAt(service.model.tables, service.model.databases, rejects)
}

async function append(records: readonly NewRecord[]): Promise<void> {
  const writer = await openJournalWriter(journal)
  await writer.append(records)
  await writer.close()
}

async function appendsNothing<T>(work: () => Promise<T>): Promise<T> {
  const before = journalEnds(journal)
  const done = await work()
  expect(journalEnds(journal)).toEqual(before)
  return done
}

function run(...args: string[]) {
  return runHere(['rejects', ...args, '--data-dir', directory.path])
}

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await run(...args, '--json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout) as T
}
