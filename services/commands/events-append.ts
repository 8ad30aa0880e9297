/**
 * `pledgeview events append`: validates NDJSON events line by line and appends them to the event log.
 *
 * It stops at the first bad line. Everything before that line is appended, and the message says how to go on. Memory
 * is bounded for any input. Events that are appended a second time change nothing, so a run can be repeated.
 */
import { createReadStream, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import {
  eventLineBytesMax,
  isBlank,
  type Line,
  readEventLine,
  recordOf,
  splitLines,
} from '../log/event-lines.ts'
import { openJournalWriter } from '../log/local/journal.ts'
import type { EventWriter, NewRecord } from '../log/port.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createProgress, grouped, megabytes } from '../runtime/progress.ts'
import { type Io, printJson } from './command.ts'
import { printable } from './printable.ts'

export interface AppendOptions {
  source: AsyncIterable<Uint8Array | string>
  writer: EventWriter
  /** Frames with the ids that the log's readers resolve. Default: the fixed ids. */
  encode?: StateEncoder
  /** The first line to read, from 1. Lines before it are skipped. */
  fromLine?: number
  onProgress?: (progress: AppendProgress) => void
  lineBytesMax?: number
  batchRowsMax?: number
  batchBytesMax?: number
}

/** Lines that were read, including skipped and blank ones, and events that are durable in the log. */
export interface AppendProgress {
  lines: number
  appended: number
}

/**
 * Appending stopped. The lines before `line` are in the log; this run appended `appended` events of them. Nothing
 * else is.
 */
export class EventsAppendError extends Error {
  override name = 'EventsAppendError'
  /** The line to go on from: the bad one, or the first that could not be appended. */
  readonly line: number
  /** A path in the line, `line` for the whole line, or `undefined` if the log failed. */
  readonly field: string | undefined
  readonly reason: string
  readonly appended: number

  constructor(at: { line: number; field?: string; reason: string; appended: number; cause?: unknown }) {
    const place =
      at.field === undefined || at.field === 'line' ? `line ${at.line}` : `line ${at.line}: ${at.field}`
    super(
      `${place} ${at.reason}; ${beforeText(at.appended)}. Repair it, then go on with --from-line ${at.line}.`,
      { cause: at.cause },
    )
    this.line = at.line
    this.field = at.field
    this.reason = at.reason
    this.appended = at.appended
  }
}

function beforeText(appended: number): string {
  if (appended === 0) return 'nothing was appended'
  return `${countText(appended, 'event')} before it ${appended === 1 ? 'was' : 'were'} appended`
}

interface Batch {
  records: NewRecord[]
  bytes: number
  firstLine: number
}

/** Appends the events of an NDJSON stream in batches; each batch is all or nothing. Throws `EventsAppendError`. */
export async function eventsAppend({
  source,
  writer,
  encode = encodeState,
  fromLine = 1,
  onProgress = () => undefined,
  lineBytesMax = eventLineBytesMax,
  batchRowsMax = 2_000,
  batchBytesMax = 4 * 1024 ** 2,
}: AppendOptions): Promise<AppendProgress> {
  const progress: AppendProgress = { lines: 0, appended: 0 }
  let batch = emptyBatch()

  async function flush(): Promise<void> {
    const { records, firstLine } = batch
    batch = emptyBatch()
    if (records.length === 0) return
    try {
      await writer.append(records)
    } catch (cause) {
      const reason = `could not be appended: ${messageOf(cause)}`
      throw new EventsAppendError({ line: firstLine, reason, appended: progress.appended, cause })
    }
    progress.appended += records.length
    // Appending may have blocked the event loop, and reading may never wait. So other work gets a chance here.
    await yieldToEventLoop()
  }

  async function take(line: Line): Promise<void> {
    progress.lines = line.number
    if (line.number < fromLine || isBlank(line)) return
    const read = readEventLine(line, lineBytesMax)
    if ('fault' in read) {
      await flush()
      throw new EventsAppendError({ line: line.number, ...read.fault, appended: progress.appended })
    }
    const record = recordOf(read.event, encode)
    if (batch.records.length === 0) batch.firstLine = line.number
    batch.records.push(record)
    batch.bytes += (record.key?.length ?? 0) + (record.value?.length ?? 0)
    if (batch.records.length >= batchRowsMax || batch.bytes >= batchBytesMax) await flush()
  }

  try {
    for await (const lines of splitLines(source, lineBytesMax)) {
      for (const line of lines) await take(line)
      onProgress(progress)
    }
  } catch (cause) {
    if (cause instanceof EventsAppendError) throw cause
    await flush()
    const reason = `could not be read: ${messageOf(cause)}`
    throw new EventsAppendError({ line: progress.lines + 1, reason, appended: progress.appended, cause })
  }
  await flush()
  onProgress(progress)
  return progress
}

function emptyBatch(): Batch {
  return { records: [], bytes: 0, firstLine: 0 }
}

export interface EventsAppendArgs {
  /** A path, or `-` for stdin. */
  file: string
  dataDir: string
  fromLine?: number
  /** Print one JSON object on stdout. */
  json?: boolean
}

/** An event log that is open for appending, and the encoder for its values. */
export interface AppendTarget {
  writer: EventWriter
  encode: StateEncoder
}

/** Runs the command; by default it appends to the journal. Resolves with the exit code: 0, or 1 after a failure. */
export async function runEventsAppend(
  args: EventsAppendArgs,
  io: Io,
  openTarget: () => Promise<AppendTarget> = () => openJournalTarget(args.dataDir),
): Promise<number> {
  try {
    const input = openInput(args.file, io)
    const target = await openTarget()
    try {
      printResult(await appendInput(input, target, args, io), args, io)
      return 0
    } finally {
      await target.writer.close()
    }
  } catch (cause) {
    if (args.json) printJson(io, { error: errorObject(cause) })
    io.stderr.write(`pledgeview: ${printable(`${args.file}: ${messageOf(cause)}`)}\n`)
    return 1
  }
}

type TimedResult = AppendProgress & { elapsedMs: number }

async function appendInput(
  { source, totalBytes }: Input,
  { writer, encode }: AppendTarget,
  { fromLine = 1 }: EventsAppendArgs,
  { stderr }: Io,
): Promise<TimedResult> {
  const startedMs = performance.now()
  const bar = createProgress({ stream: stderr, label: 'appending', total: totalBytes, format: megabytes })
  const counted = countBytes(source)
  try {
    const result = await eventsAppend({
      source: counted.source,
      writer,
      encode,
      fromLine,
      onProgress({ lines }) {
        const perSecond = Math.round((lines * 1000) / (performance.now() - startedMs))
        bar.update(counted.doneBytes(), `${grouped(lines)} lines  ${grouped(perSecond)}/s`)
      },
    })
    return { ...result, elapsedMs: performance.now() - startedMs }
  } finally {
    bar.done()
  }
}

interface Input {
  source: AsyncIterable<Uint8Array | string>
  totalBytes: number | undefined
}

function openInput(file: string, { stdin }: Io): Input {
  if (file === '-') return { source: stdin, totalBytes: undefined }
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) throw new Error('there is no such file')
  if (found.isDirectory()) throw new Error('is a directory, not a file of events')
  return { source: readFile(file), totalBytes: found.isFile() ? found.size : undefined }
}

// Opened when it is first read. A stream that is opened and never read would have no handler for its errors.
async function* readFile(file: string): AsyncGenerator<Buffer> {
  yield* createReadStream(file, { highWaterMark: readBytes })
}

const readBytes = 256 * 1024

async function openJournalTarget(dataDir: string): Promise<AppendTarget> {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new Error(`cannot make the data directory ${dataDir}: ${messageOf(cause)}`, { cause })
  }
  return { writer: await openJournalWriter(join(dataDir, 'journal.sqlite')), encode: encodeState }
}

function countBytes(source: Input['source']): { source: Input['source']; doneBytes: () => number } {
  let done = 0
  async function* counted(): AsyncGenerator<Uint8Array | string> {
    for await (const data of source) {
      done += data.length
      yield data
    }
  }
  return { source: counted(), doneBytes: () => done }
}

function printResult(
  { lines, appended, elapsedMs }: TimedResult,
  { file, fromLine = 1, json }: EventsAppendArgs,
  io: Io,
): void {
  if (json) {
    printJson(io, { appended, lines, elapsed_ms: Math.round(elapsedMs) })
  } else if (lines === 0) {
    io.stdout.write(`${file} is empty: nothing was appended\n`)
  } else if (lines < fromLine) {
    io.stdout.write(`${file} ends with line ${lines}: nothing was appended\n`)
  } else {
    const seconds = (elapsedMs / 1000).toFixed(1)
    io.stdout.write(
      `${countText(appended, 'event')} appended, of ${countText(lines, 'line')}, in ${seconds} s\n`,
    )
  }
}

function errorObject(cause: unknown): object {
  if (!(cause instanceof EventsAppendError)) return { message: messageOf(cause) }
  const { message, line, field, reason, appended } = cause
  return { message, line, ...(field !== undefined && { field }), reason, appended, from_line: line }
}

function countText(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}
