import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { openJournalInspector } from '../shared/event-log/journal/inspector.ts'
import {
  type Command,
  defaultDataDirectory,
  printJson,
  readArguments,
  UsageError,
  wholeNumber,
} from './command.ts'

export const rejectsCommand: Command = {
  usage: `usage: pledgeview rejects list [--limit N] [--data-dir D] [--json]

Lists the latest rejects first. With --json each has its original key and value in base64.

  --limit N      at most so many (default 20, 10000 at most)
  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: {
        'data-dir': { type: 'string', default: defaultDataDirectory },
        limit: { type: 'string', default: '20' },
        json: { type: 'boolean', default: false },
      },
    })
    if (positionals.length !== 1 || positionals[0] !== 'list') {
      throw new UsageError('the rejects command is: rejects list')
    }
    const limit = wholeNumber('limit', values.limit, { min: 1, max: 10_000 })
    const { journal } = openExistingDataDirectory(values['data-dir'])
    const inspector = openJournalInspector(journal)
    try {
      const total = inspector.rejectCount()
      const rejects = inspector.rejects({ limit })
      if (values.json) {
        printJson(io, {
          total,
          rejects: rejects.map(({ record, reason, rejectedAt }) => ({
            topic: record.topic,
            partition: record.partition,
            offset: record.offset,
            reason,
            rejected_at: new Date(rejectedAt).toISOString(),
            key_base64: base64(record.key),
            value_base64: base64(record.value),
          })),
        })
        return 0
      }
      io.stdout.write(`${total} rejects in all\n`)
      for (const { record, reason, rejectedAt } of rejects) {
        const at = new Date(rejectedAt).toISOString()
        io.stdout.write(`${at}  ${record.topic}/${record.partition} offset ${record.offset}  ${reason}\n`)
      }
      return 0
    } finally {
      inspector.close()
    }
  },
}

function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('base64')
}
