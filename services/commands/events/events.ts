/**
 * `pledgeview events append`: validates NDJSON events line by line and appends them to the event log.
 *
 * It stops at the first bad line. Everything before that line is appended, and the message says how to go on. Memory
 * is bounded for any input. Events that are appended a second time change nothing, so a run can be repeated.
 */
import { createReadStream, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { encodeState, type StateEncoder } from '../../../contracts/events/codec.ts'
import { jsonBytesMax } from '../../../contracts/events/ndjson.ts'
import { kafkaSettings, stateEncoderOf } from '../../distributed/settings.ts'
import { isBlank, type Line, readEventLine, recordOf, splitLines } from '../../log/event-lines.ts'
import { openKafkaWriter } from '../../log/kafka/writer.ts'
import { openJournalWriter } from '../../log/local/journal.ts'
import type { EventWriter, NewRecord } from '../../log/port.ts'
import { type Config, readConfig } from '../../runtime/config.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { createLogger } from '../../runtime/ops/logger.ts'
import { counted, createProgress, grouped, megabytes } from '../../runtime/progress.ts'
import {
  type Command,
  commonOptions,
  embeddedDirectory,
  type Io,
  printJson,
  readArguments,
  UsageError,
  wholeNumber,
} from '../command.ts'
import { printable } from '../printable.ts'

const options = {
  FILE: 'a path, or - for stdin',
  '--from-line N': 'begin with line N (the first is 1); use it to go on after you have repaired a bad line',
  ...commonOptions,
}

export const eventsCommand: Command = {
  help: {
    call: 'events append FILE [OPTIONS]',
    does: 'Appends change events to the event log.',
    subcommands: {
      append: {
        call: 'events append FILE [--from-line N] [--data-dir D] [--json]',
        does:
          'Validates change events, one JSON object per line, and appends them to the event log. It stops at the first bad ' +
          'line and names it; the events before that line are appended. The log is Kafka if PLEDGEVIEW_KAFKA_BROKERS is ' +
          'set and --data-dir is not given. Otherwise it is the journal in the data directory.',
        options,
        examples: ['events append events.ndjson', 'events append - --from-line 2001 < events.ndjson'],
        cost: 'Memory stays small for any size of file. Events that are appended twice change nothing but the size of the log.',
      },
    },
  },

  async run(args, io) {
    const { values, positionals } = readArguments(args, options, { allowPositionals: true })
    const [verb, file, ...rest] = positionals
    if (verb !== 'append') throw new UsageError('the events command is: events append FILE')
    if (file === undefined || rest.length > 0)
      throw new UsageError('events append takes one FILE, or - for stdin')
    const { 'from-line': from = '1' } = values
    const fromLine = wholeNumber('from-line', from, { min: 1, max: Number.MAX_SAFE_INTEGER })
    const config = readConfig(process.env)
    const directory = embeddedDirectory(values['data-dir'], config)
    const openTarget = () =>
      directory === undefined ? openKafkaTarget(config) : openJournalTarget(directory)
    return runEventsAppend({ file, fromLine, json: values.json }, io, openTarget)
  },
}

const batchBytesMax = 4 * 1024 ** 2

/** An event log that is open for appending. */
interface AppendTarget {
  writer: EventWriter
  /** Frames with the ids that the log's readers resolve. Default: the fixed ids. */
  encode?: StateEncoder
  /** Whether a failed append of the writer may leave some of its records in the log. Default: false. */
  isPartial?: boolean
}

interface AppendOptions extends AppendTarget {
  source: AsyncIterable<Uint8Array | string>
  /** The first line to read, from 1. Lines before it are skipped. */
  fromLine?: number
  onProgress?: (progress: AppendProgress) => void
  batchRowsMax?: number
}

/** Lines that were read, including skipped and blank ones, and events that are durable in the log. */
export interface AppendProgress {
  lines: number
  appended: number
}

/** The place at which appending stopped, and why. */
interface Stop {
  /** The line to go on from: the bad one, or the first that could not be appended. */
  line: number
  /** A path in the line, or `line` for the whole line. Left out if the log or the input failed. */
  field?: string
  reason: string
  /** By this run. */
  appended: number
}

/**
 * Appending stopped. The lines before that are in the log. Nothing else is, unless the message says that some may be: a request to Kafka
 * may have failed after others.
 */
export class EventsAppendError extends Error {
  override name = 'EventsAppendError'
  readonly stop: Stop

  constructor(stop: Stop, { isPartial = false, cause }: { isPartial?: boolean; cause?: unknown } = {}) {
    const { line, field = 'line', reason } = stop
    const place = field === 'line' ? `line ${line}` : `line ${line}: ${field}`
    const before = beforeText(stop.appended, isPartial)
    super(`${place} ${reason}; ${before}. Repair it, then go on with --from-line ${line}.`, { cause })
    this.stop = stop
  }
}

function beforeText(appended: number, isPartial: boolean): string {
  const rest = 'of the events from there on, some may be in the log'
  if (appended === 0) return isPartial ? rest : 'nothing was appended'
  const before = `${counted(appended, 'event')} before it ${appended === 1 ? 'was' : 'were'} appended`
  return isPartial ? `${before}, and ${rest}` : before
}

/** Appends the events of an NDJSON stream in batches. Throws `EventsAppendError`. */
export async function eventsAppend({
  source,
  writer,
  encode = encodeState,
  isPartial = false,
  fromLine = 1,
  onProgress = () => undefined,
  batchRowsMax = 2_000,
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
      const stop = { line: firstLine, reason, appended: progress.appended }
      throw new EventsAppendError(stop, { isPartial, cause })
    }
    progress.appended += records.length
    // Appending may have blocked the event loop, and reading may never wait. So other work gets a chance here.
    await yieldToEventLoop()
  }

  async function take(line: Line): Promise<void> {
    progress.lines = line.number
    if (line.number < fromLine || isBlank(line)) return
    const read = readEventLine(line, jsonBytesMax)
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
    for await (const lines of splitLines(source, jsonBytesMax)) {
      for (const line of lines) await take(line)
      onProgress(progress)
    }
  } catch (cause) {
    if (cause instanceof EventsAppendError) throw cause
    await flush()
    const reason = `could not be read: ${messageOf(cause)}`
    const stop = { line: progress.lines + 1, reason, appended: progress.appended }
    throw new EventsAppendError(stop, { cause })
  }
  await flush()
  onProgress(progress)
  return progress
}

function emptyBatch() {
  return { records: [] as NewRecord[], bytes: 0, firstLine: 0 }
}

/** Appends to the journal of a data directory, which is made if it is missing. */
export async function openJournalTarget(directory: string): Promise<AppendTarget> {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new Error(`cannot make the data directory ${directory}: ${messageOf(cause)}`, { cause })
  }
  return { writer: await openJournalWriter(join(directory, 'journal.sqlite')) }
}

/** Appends to Kafka, under the ids of the registry if one is configured. */
async function openKafkaTarget(config: Config): Promise<AppendTarget> {
  const encode = await stateEncoderOf(config)
  const writer = await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') })
  return { encode, writer, isPartial: true }
}

/** `file`: a path, or `-` for stdin. Resolves with the exit code: 0, or 1 after a failure. */
export async function runEventsAppend(
  { file, fromLine, json }: { file: string; fromLine: number; json: boolean },
  io: Io,
  openTarget: () => Promise<AppendTarget>,
): Promise<number> {
  const startedMs = performance.now()
  try {
    const { source, totalBytes } = openInput(file, io)
    const target = await openTarget()
    const bar = createProgress(io.stderr, { label: 'appending', total: totalBytes, format: megabytes })
    let readBytes = 0
    async function* measured(): AsyncGenerator<Uint8Array | string> {
      for await (const data of source) {
        readBytes += data.length
        yield data
      }
    }
    const onProgress = ({ lines }: AppendProgress) => bar.update(readBytes, `${grouped(lines)} lines`)
    try {
      const options = { source: measured(), fromLine, onProgress }
      const { lines, appended } = await eventsAppend({ ...target, ...options })
      const elapsedMs = Math.round(performance.now() - startedMs)
      if (json) printJson(io, { appended, lines, elapsed_ms: elapsedMs })
      else io.stdout.write(`${doneText({ lines, appended, elapsedMs }, file, fromLine)}\n`)
      return 0
    } finally {
      bar.done()
      await target.writer.close()
    }
  } catch (cause) {
    if (json) printJson(io, { error: errorObject(cause) })
    io.stderr.write(`pledgeview: ${printable(`${file}: ${messageOf(cause)}`)}\n`)
    return 1
  }
}

function openInput(
  file: string,
  { stdin }: Io,
): { source: AppendOptions['source']; totalBytes: number | undefined } {
  if (file === '-') return { source: stdin, totalBytes: undefined }
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) throw new Error('there is no such file')
  if (found.isDirectory()) throw new Error('is a directory, not a file of events')
  return { source: readFile(file), totalBytes: found.isFile() ? found.size : undefined }
}

// Opened when it is first read. A stream that is opened and never read would have no handler for its errors.
async function* readFile(file: string): AsyncGenerator<Buffer> {
  yield* createReadStream(file, { highWaterMark: 256 * 1024 })
}

function doneText(
  { lines, appended, elapsedMs }: AppendProgress & { elapsedMs: number },
  file: string,
  fromLine: number,
): string {
  if (lines === 0) return `${file} is empty: nothing was appended`
  if (lines < fromLine) return `${file} ends with line ${lines}: nothing was appended`
  const seconds = (elapsedMs / 1000).toFixed(1)
  return `${counted(appended, 'event')} appended, of ${counted(lines, 'line')}, in ${seconds} s`
}

function errorObject(cause: unknown): object {
  if (!(cause instanceof EventsAppendError)) return { message: messageOf(cause) }
  return { message: cause.message, ...cause.stop, from_line: cause.stop.line }
}
