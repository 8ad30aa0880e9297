/** The journal's compaction: of each key the newest event stays, positions stay valid, and removed bytes are gone from the files. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CompactionOptions, compactJournal } from '../../../services/log/local/compact.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter, LogRecord } from '../../../services/log/port.ts'
import { filesWith } from '../../support/events/find-texts.ts'
import { fromStart } from '../../support/events/starts.ts'

const bounds = { recordsMax: 1_000, bytesMax: 10_000_000 }
const tombstone = 2n ** 64n - 1n

/** Events of this test are `version text`; anything else is no event. */
function versionOf({ value }: LogRecord): bigint | undefined {
  if (value === null) return tombstone
  const [, version] = /^(\d+) /.exec(Buffer.from(value).toString()) ?? []
  return version === undefined ? undefined : BigInt(version)
}

const whole: CompactionOptions = {
  versionOf,
  isDry: false,
  rewriteBytesMax: Number.POSITIVE_INFINITY,
}

describe('a compaction of the journal', () => {
  let directory: string
  let path: string
  let writer: EventWriter
  let reader: EventReader

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'pledgeview-compaction-'))
    path = join(directory, 'journal.sqlite')
    writer = await openJournalWriter(path)
    reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
  })

  afterEach(async () => {
    await reader.close()
    await writer.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const append = (...records: [key: string, value: string | null][]) =>
    writer.append(
      records.map(([key, value]) => ({
        topic: 'campaigns',
        key: Buffer.from(key),
        value: value === null ? null : Buffer.from(value),
      })),
    )

  async function readOn(from = reader, waitMsMax = 0): Promise<LogRecord[]> {
    const { records, positions, assignment } = await from.poll(
      { ...bounds, waitMsMax },
      AbortSignal.timeout(5_000),
    )
    await from.commit(assignment, positions)
    return records
  }

  /** What a consumer that begins now reads. */
  async function replay(): Promise<string[]> {
    const fresh = await openJournalReader(path, { consumer: 'replay', starts: fromStart })
    const records = await readOn(fresh)
    await fresh.close()
    return records.map(
      ({ key, value }) => `${Buffer.from(key ?? []).toString()}=${value ? Buffer.from(value) : null}`,
    )
  }

  test('holds no records in memory while it looks for those to remove', async () => {
    const value = Buffer.from(`1 ${'x'.repeat(4_000)}`)
    const records = Array.from({ length: 500 }, (_, n) => ({
      topic: 'campaigns' as const,
      key: Buffer.from(`key ${n % 250}`),
      value,
    }))
    for (let n = 0; n < 20; n++) await writer.append(records)
    let bytesMax = 0
    const before = process.memoryUsage().arrayBuffers
    const measured = (record: LogRecord) => {
      bytesMax = Math.max(bytesMax, process.memoryUsage().arrayBuffers - before)
      return versionOf(record)
    }
    const report = await compactJournal(path, { ...whole, versionOf: measured, isDry: true })
    expect(report.records).toBe(9_750)
    // All of them are 40 MB.
    expect(bytesMax).toBeLessThan(20_000_000)
  })

  test('keeps of each key the highest version, in whatever order they came, and the tombstone above all', async () => {
    await append(['a', '1 first'], ['b', '7 newest'], ['c', '1 state'], ['a', '2 second'], ['b', '6 stale'])
    await append(
      ['c', null],
      ['c', '9 too late'],
      ['d', '1 alone'],
      ['e', '3 same'],
      ['e', '3 same'],
      ['c', null],
      ['c', 'no event'],
    )
    await readOn()
    const report = await compactJournal(path, whole)
    expect(report).toMatchObject({ records: 7, isRewritten: true })
    expect(await replay()).toEqual(['b=7 newest', 'a=2 second', 'd=1 alone', 'e=3 same', 'c=null'])
    expect(await compactJournal(path, whole)).toMatchObject({ records: 0 })
  })

  test('leaves positions and lag right for a reader that has not read what it removes, also at the end', async () => {
    await append(['a', '1 first'], ['a', '9 newest'], ['b', '1 alone'])
    await readOn()
    await append(['a', '3 late'], ['a', '4 late'])
    expect(await compactJournal(path, whole)).toMatchObject({ records: 3 })
    // Long enough to look several times: the first look moves to the end.
    expect(await readOn(reader, 100)).toEqual([])
    const lag = await reader.lag()
    expect(lag.find(({ topic }) => topic === 'campaigns')).toMatchObject({ committed: 6, end: 6 })
    await append(['b', '2 later'])
    expect((await readOn()).map(({ offset }) => offset)).toEqual([6])
  })

  test('leaves no byte of what it removed in the files, beside open readers and writers, in large values too', async () => {
    const secrets = ['small SECRET', `large SECRET ${'x'.repeat(60_000)} SECRET`]
    await append(...Array.from({ length: 50 }, (_, n): [string, string] => [`k${n}`, `1 ${secrets[n % 2]}`]))
    await append(...Array.from({ length: 50 }, (_, n): [string, null] => [`k${n}`, null]))
    await readOn()
    expect(filesWith(directory, ['SECRET'])).not.toEqual([])
    const { bytesBefore, bytesAfter } = await compactJournal(path, whole)
    expect(filesWith(directory, ['SECRET'])).toEqual([])
    expect(bytesAfter).toBeLessThan(bytesBefore / 10)
    await append(['k1', '2 after'])
    expect(await readOn()).toHaveLength(1)
  })

  test('overwrites what it removed although the file is too large to be rewritten', async () => {
    await append(['k', '1 SECRET'], ['k', null])
    await readOn()
    expect(await compactJournal(path, { ...whole, rewriteBytesMax: 0 })).toMatchObject({ isRewritten: false })
    expect(filesWith(directory, ['SECRET'])).toEqual([])
  })

  test('keeps records that are no events if nothing newer is there, until somebody names them', async () => {
    await append(['a', 'no event'], ['a', '1 event'], ['b', 'no event'], ['c', '1 event'], ['c', 'no event'])
    const read = await readOn()
    expect(await compactJournal(path, whole)).toMatchObject({ records: 1 })
    // The last one is newer than the event before it: a corrected program may be able to read it.
    expect(await replay()).toEqual(['a=1 event', 'b=no event', 'c=1 event', 'c=no event'])
    const unwanted = read.filter(({ offset }) => offset === 3 || offset === 5)
    expect(await compactJournal(path, { ...whole, unwanted, isDry: true })).toMatchObject({
      records: 2,
      isRewritten: false,
    })
    expect(await replay()).toHaveLength(4)
    // At the place of another record, as in a journal that was put back. And what is an event by now.
    const others = read.map(record => ({ ...record, appendedAt: record.appendedAt - 1 }))
    const events = read.filter(({ offset }) => offset === 2 || offset === 4)
    await compactJournal(path, { ...whole, unwanted: [...others, ...events] })
    expect(await replay()).toHaveLength(4)
    expect(await compactJournal(path, { ...whole, unwanted })).toMatchObject({ records: 2 })
    expect(await replay()).toEqual(['a=1 event', 'c=1 event'])
  })
})
