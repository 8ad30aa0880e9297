import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import {
  type AppendProgress,
  eventsAppend,
  openJournalTarget,
  runEventsAppend,
} from '../../../services/commands/events/events.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { LogRecord, NewRecord } from '../../../services/log/port.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { fromStart } from '../../support/events/starts.ts'

const batchRows = 10
let directory: string
let journal: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'append-'))
  journal = join(directory, 'journal.sqlite')
})

afterEach(() => rmSync(directory, { recursive: true }))

describe('appending events', () => {
  type Fault = [line: number, what: string, breakLine: (line: string) => string | Buffer, reason: RegExp]
  // Which fields and reasons there are, test/unit/events/ndjson.test.ts shows.
  const faults: Fault[] = [
    ...[1, 2, batchRows, batchRows + 1, 40].map(
      (at): Fault => [at, 'is cut', line => line.slice(0, 70), /is not JSON/],
    ),
    [37, 'has 50 MB', line => line.replace('b_1', 'b'.repeat(50_000_000)), /is longer than 1,048,576 bytes/],
    [37, 'is no text', line => Buffer.from(line.replace('b_1', '\xff'), 'latin1'), /is not valid UTF-8/],
  ]

  test.each(faults)(
    'appends all before line %i, which %s, nothing of it, and goes on there',
    async (line, _, breakLine, reason) => {
      const good = range(1, 40).map(pledgeLine)
      const broken = good.map((text, i) => (i + 1 === line ? breakLine(text) : text))
      await expect(append(streamOf(broken))).rejects.toMatchObject({
        stop: { line, appended: line - 1, field: 'line', reason: expect.stringMatching(reason) },
        message: expect.stringMatching(new RegExp(`line ${line} .*--from-line ${line}`, 's')),
      })
      expect(await appendedPledges()).toEqual(range(1, line - 1))
      expect(await append(streamOf(good), { fromLine: line })).toEqual({ lines: 40, appended: 41 - line })
      expect(await appendedPledges()).toEqual(range(1, 40))
    },
  )

  test('says of a last line that has no end and is not whole that it seems cut off', async () => {
    const input = `${pledgeLine(1)}\n${pledgeLine(2).slice(0, -5)}`
    const reason = expect.stringContaining('is the last one, has no line end and seems cut off')
    const stop = { line: 2, field: 'line', appended: 1, reason }
    await expect(append(Readable.from([input]))).rejects.toMatchObject({ stop })
    expect(await appendedPledges()).toEqual([1])
  })

  test('passes over blank lines, carriage returns and a byte order mark, and counts the lines', async () => {
    const input = `\ufeff${pledgeLine(1)}\r\n\r\n \t\r\n${pledgeLine(2)}\r\n\n`
    expect(await append(Readable.from([input]))).toEqual({ lines: 5, appended: 2 })
    expect(await appendedPledges()).toEqual([1, 2])
  })

  test('does not look at what stands before the line to begin with', async () => {
    const input = streamOf(['not JSON', 'x'.repeat(3_000_000), pledgeLine(3), pledgeLine(4)])
    expect(await append(input, { fromLine: 3 })).toEqual({ lines: 4, appended: 2 })
    expect(await append(streamOf([pledgeLine(9)]), { fromLine: 5 })).toEqual({ lines: 1, appended: 0 })
    expect(await appendedPledges()).toEqual([3, 4])
  })

  test('names the line to go on from when the input fails, with everything that came before appended', async () => {
    async function* failing(): AsyncGenerator<Buffer> {
      yield Buffer.from(`${pledgeLine(1)}\n${pledgeLine(2)}\n${pledgeLine(3).slice(0, 9)}`)
      throw new Error('EIO: i/o error, read')
    }
    const stop = { line: 3, appended: 2, reason: 'could not be read: EIO: i/o error, read' }
    await expect(append(failing())).rejects.toMatchObject({ stop })
    expect(await appendedPledges()).toEqual([1, 2])
  })
})

describe('the command events append', () => {
  test('makes the data directory for its owner alone, appends a file with each type to its topic, and says what it did', async () => {
    const tombstones = ['pledge","key":"c_1/p_1', 'api-key","key":"pv_live_1'].map(
      entity => `{"type":"${entity}","data":null}\n`,
    )
    const campaign = formatEvent(campaignEvent({ campaign_id: 'c_1' }))
    const file = write('events.ndjson', `${campaign}\n${tombstones.join('')}`)
    const dataDir = join(directory, 'data')
    const run = await runWith({ file, dataDir })
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout).toMatch(/^3 events appended, of 3 lines, in \d+\.\d s\n$/)
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    const records = await appendedRecords(join(dataDir, 'journal.sqlite'))
    const seen = records.map(({ topic, key, value }) => [topic, `${Buffer.from(key ?? [])}`, value === null])
    expect(seen).toEqual([
      ['api-keys', 'pv_live_1', true],
      ['campaigns', 'c_1', false],
      ['pledges', 'c_1/p_1', true],
    ])
  })

  test('fails with line, field and the way on, on stderr and as one JSON object', async () => {
    const input = `${pledgeLine(1)}\n${pledgeLine(2).replace('ACTIVE', 'PAID')}\n`
    const run = await runWith({ file: '-', json: true }, input)
    expect(run.code).toBe(1)
    expect(run.stderr).toMatch(/^pledgeview: -: line 2: data\.status is not one of .*--from-line 2/)
    expect(JSON.parse(run.stdout)).toEqual({
      error: {
        message: expect.stringContaining('--from-line 2'),
        line: 2,
        field: 'data.status',
        reason: expect.stringContaining('"PAID"'),
        appended: 1,
        from_line: 2,
      },
    })
    const again = await runWith({ file: '-', fromLine: 2 }, `${pledgeLine(1)}\n${pledgeLine(2)}\n`)
    expect(again.code).toBe(0)
    expect(await appendedPledges()).toEqual([1, 2])
  })

  test.each([
    ['a file that is missing', () => join(directory, 'missing'), 'there is no such file'],
    ['a directory', () => directory, 'is a directory, not a file of events'],
  ])('says so of %s, and makes no journal', async (_name, path, message) => {
    const dataDir = join(directory, 'data')
    const run = await runWith({ file: path(), dataDir })
    expect(run).toMatchObject({ code: 1, stdout: '', stderr: `pledgeview: ${path()}: ${message}\n` })
    expect(statSync(dataDir, { throwIfNoEntry: false })).toBeUndefined()
  })

  test('shows control characters of the input as escapes, so that the input cannot write to the terminal', async () => {
    const line = pledgeLine(1).replace('"version"', '"a\\u001b[2J\u009b1A\u202e":1,"version"')
    const { stderr } = await runWith({ file: '-' }, `${line}\n`)
    expect(stderr).toContain('"a\\u001b[2J\\u{9b}1A\\u{202e}" is not a field')
    expect(stderr.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  test.each([
    ['an empty file', '', 1, 'is empty'],
    ['one that ends before the line to begin with', `${pledgeLine(1)}\n`, 7, 'ends with line 1'],
  ])('says so of %s', async (_, content, fromLine, why) => {
    const file = write('events.ndjson', content)
    const stdout = `${file} ${why}: nothing was appended\n`
    expect(await runWith({ file, fromLine })).toMatchObject({ code: 0, stdout })
  })

  test('says so if the data directory cannot be one, or its journal is something else', async () => {
    const file = write('events.ndjson', `${pledgeLine(1)}\n`)
    const blocked = await runWith({ file, dataDir: file })
    expect(blocked).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot make the data directory'),
    })
    mkdirSync(join(directory, 'other'))
    writeFileSync(join(directory, 'other', 'journal.sqlite'), 'x'.repeat(4096))
    const other = await runWith({ file, dataDir: join(directory, 'other') })
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot open the journal') })
  })

  test.each([
    [0, 'of the events from there on, some may be in the log'],
    [1, '2,000 events before it were appended, and of the events from there on, some may be in the log'],
  ])(
    'says of a log that takes parts, as Kafka does, what may be there after %i batches and a failure',
    async (batches, said) => {
      const count = 2_000 * batches + 4
      const input = `${range(1, count).map(pledgeLine).join('\n')}\n`
      const openTarget = async () => {
        const { writer, ...target } = await openJournalTarget(directory)
        let appends = 0
        const append = async (records: readonly NewRecord[]) => {
          const isLast = appends++ === batches
          await writer.append(isLast ? records.slice(0, records.length / 2) : records)
          if (isLast) throw new Error('the broker is away')
        }
        return { ...target, writer: { ...writer, append }, isPartial: true }
      }
      const run = await runWith({ file: '-' }, input, {}, openTarget)
      expect(run.stderr).toBe(
        `pledgeview: -: line ${count - 3} could not be appended: the broker is away; ${said}. ` +
          `Repair it, then go on with --from-line ${count - 3}.\n`,
      )
      expect(await appendedPledges()).toEqual(range(1, count - 2))
    },
  )

  test('shows progress on a terminal, on stderr, and leaves nothing of it', async () => {
    const input = `${range(1, 3_000).map(pledgeLine).join('\n')}\n`
    const run = await runWith({ file: write('events.ndjson', input) }, '', { isTTY: true })
    const paints = run.stderr.split('\r\x1b[K')
    expect(paints[1]).toMatch(/^appending \[[#-]{24}\] \d+%/)
    expect(paints.at(-1)).toBe('')
  })
})

function pledgeLine(number: number): string {
  return formatEvent(pledgeEvent({ campaign_id: 'c_1', pledge_id: `p_${number}`, backer_id: 'b_1' }))
}

function streamOf(lines: readonly (string | Buffer)[]): Readable {
  const end = Buffer.from('\n')
  return Readable.from(lines.flatMap(line => [Buffer.from(line), end]))
}

async function append(
  source: AsyncIterable<Buffer>,
  { fromLine = 1 }: { fromLine?: number } = {},
): Promise<AppendProgress> {
  const writer = await openJournalWriter(journal)
  try {
    return await eventsAppend({ source, writer, fromLine, batchRowsMax: batchRows })
  } finally {
    await writer.close()
  }
}

async function appendedRecords(path = journal): Promise<readonly LogRecord[]> {
  const reader = await openJournalReader(path, { consumer: 'test', starts: fromStart })
  const bounds = { recordsMax: 10_000, bytesMax: 1024 ** 2, waitMsMax: 0 }
  const { records } = await reader.poll(bounds, new AbortController().signal)
  await reader.close()
  return records
}

/** The numbers of the pledges in the journal, in its order. */
async function appendedPledges(path = journal): Promise<number[]> {
  const decode = createDecoder()
  return (await appendedRecords(path)).map(record => {
    const event = decode(record)
    if ('reason' in event || event.type !== 'pledge' || event.data === null) throw new Error('not a pledge')
    return Number(event.data.pledge_id.slice(2))
  })
}

async function runWith(
  {
    file,
    dataDir = directory,
    ...args
  }: { file: string; dataDir?: string; fromLine?: number; json?: boolean },
  input = '',
  terminal: { isTTY?: boolean } = {},
  openTarget = () => openJournalTarget(dataDir),
): Promise<{ code: number; stdout: string; stderr: string }> {
  const stdout = new PassThrough()
  const stderr = Object.assign(new PassThrough(), terminal)
  const io = { stdin: Readable.from([input]), stdout, stderr }
  const code = await runEventsAppend({ file, fromLine: 1, json: false, ...args }, io, openTarget)
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') }
}

function write(name: string, content: string): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}
