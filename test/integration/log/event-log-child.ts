/**
 * A separate process that works on an event log until it is killed or done, for tests of crashes and of concurrent
 * processes.
 *
 *     node event-log-child.ts append LOG NAME BATCHES ROWS    appends batches of pledges; prints a line once each is durable
 *     node event-log-child.ts hold DIRECTORY                  takes a data directory's lock; prints held or refused
 *
 * LOG is JSON: how to open the log.
 */
import pino from 'pino'
import { type KafkaWriterSettings, openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import type { EventWriter, NewRecord } from '../../../services/log/port.ts'

/** How a child process reaches the log under test. */
export type LogAddress = { kind: 'journal'; path: string } | { kind: 'kafka'; settings: KafkaWriterSettings }

function openWriter(address: LogAddress): Promise<EventWriter> {
  switch (address.kind) {
    case 'journal':
      return openJournalWriter(address.path)
    case 'kafka':
      return openKafkaWriter(address.settings, { logger: pino({ level: 'silent' }) })
    default:
      return address satisfies never
  }
}

function batchOf(name: string, batch: number, rows: number): NewRecord[] {
  return Array.from({ length: rows }, (_, row) => ({
    topic: 'pledges',
    key: Buffer.from(name),
    value: Buffer.from(`${batch * rows + row}`),
  }))
}

async function append(address: LogAddress, name: string, batches: number, rows: number): Promise<void> {
  const writer = await openWriter(address)
  for (let batch = 0; batch < batches; batch++) {
    await writer.append(batchOf(name, batch, rows))
    process.stdout.write(`${(batch + 1) * rows}\n`)
  }
  await writer.close()
}

function hold(directory: string): string {
  try {
    lockDataDirectory(directory)
    return 'held'
  } catch {
    return 'refused'
  }
}

const [mode, target = '', name = '', batches = '', rows = ''] = process.argv.slice(2)
if (mode === 'append') {
  await append(JSON.parse(target) as LogAddress, name, Number(batches), Number(rows))
} else if (mode === 'hold') {
  process.stdout.write(`${hold(target)}\n`)
  // Waits until it is killed, or until its parent has ended.
  process.stdin.resume()
}
