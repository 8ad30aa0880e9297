import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { type Config, readConfig } from '../shared/config.ts'
import { isDistributed, readerSettings } from '../shared/distributed.ts'
import { openJournalInspector } from '../shared/event-log/journal/inspector.ts'
import { openKafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import type { StoredReject } from '../shared/event-log/port.ts'
import { createLogger } from '../shared/logger.ts'
import {
  type Command,
  defaultDataDirectory,
  type Io,
  printJson,
  readArguments,
  UsageError,
  wholeNumber,
} from './command.ts'

export const rejectsCommand: Command = {
  usage: `usage: pledgeview rejects list [--limit N] [--data-dir D] [--json]

Lists the latest rejects first. With --json each has its original key and value in base64. Distributed
(PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given) it reads the end of the reject topic, and the total counts
its messages: a reject that was kept twice, after a kill, counts twice and is listed once.

  --limit N      at most so many (default 20, 10000 at most)
  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: {
        'data-dir': { type: 'string' },
        limit: { type: 'string', default: '20' },
        json: { type: 'boolean', default: false },
      },
    })
    if (positionals.length !== 1 || positionals[0] !== 'list') {
      throw new UsageError('the rejects command is: rejects list')
    }
    const limit = wholeNumber('limit', values.limit, { min: 1, max: 10_000 })
    const config = readConfig(process.env)
    const isEmbedded = values['data-dir'] !== undefined || !isDistributed(config)
    const found = isEmbedded
      ? journalRejects(values['data-dir'] ?? defaultDataDirectory, limit)
      : await kafkaRejects(config, limit, io)
    if (values.json) printJson(io, { total: found.total, rejects: found.rejects.map(jsonOf) })
    else printRejects(found, io)
    return 0
  },
}

interface Found {
  total: number
  rejects: StoredReject[]
}

function journalRejects(root: string, limit: number): Found {
  const inspector = openJournalInspector(openExistingDataDirectory(root).journal)
  try {
    return { total: inspector.rejectCount(), rejects: inspector.rejects({ limit }) }
  } finally {
    inspector.close()
  }
}

async function kafkaRejects(config: Config, limit: number, io: Io): Promise<Found> {
  const inspector = await openKafkaInspector(readerSettings(config), { logger: createLogger('error') })
  try {
    const total = await inspector.rejectCount()
    const { rejects, unreadable } = await inspector.rejects({ limit })
    for (const { partition, offset, reason } of unreadable) {
      io.stderr.write(`reject topic, partition ${partition}, offset ${offset}: ${reason}\n`)
    }
    return { total, rejects }
  } finally {
    await inspector.close()
  }
}

function jsonOf({ record, reason, rejectedAt }: StoredReject) {
  return {
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    reason,
    rejected_at: new Date(rejectedAt).toISOString(),
    key_base64: base64(record.key),
    value_base64: base64(record.value),
  }
}

function printRejects({ total, rejects }: Found, io: Io): void {
  io.stdout.write(`${total} rejects in all\n`)
  for (const { record, reason, rejectedAt } of rejects) {
    const at = new Date(rejectedAt).toISOString()
    io.stdout.write(`${at}  ${record.topic}/${record.partition} offset ${record.offset}  ${reason}\n`)
  }
}

function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('base64')
}
