import { withModel } from '../embedded/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { readConfig } from '../shared/config.ts'
import { openJournalInspector } from '../shared/event-log/journal/inspector.ts'
import { type Command, defaultDataDirectory, printJson, readArguments } from './command.ts'

export const statusCommand: Command = {
  usage: `usage: pledgeview status [--data-dir D] [--json]

Asks the service that runs on the data directory; where none runs, opens the directory for a moment. A distributed
projector tells its own at /status of its ops port.

  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: {
        'data-dir': { type: 'string', default: defaultDataDirectory },
        json: { type: 'boolean', default: false },
      },
    })
    const directory = openExistingDataDirectory(values['data-dir'])
    const found = await withModel(
      directory,
      readConfig(process.env),
      { isCaughtUp: false },
      async access => ({
        service: access.service ? { pid: access.service.pid, port: access.service.port } : null,
        ...(await access.status()),
      }),
    )
    const inspector = openJournalInspector(directory.journal)
    const status = { ...found, rejects: { total: inspector.rejectCount() } }
    inspector.close()
    if (values.json) {
      printJson(io, status)
      return 0
    }
    const { projector, fold, tables, service } = status
    const lines = [
      ['service', service ? `process ${service.pid}, port ${service.port}` : 'not running'],
      ['projector', projector.failure ? `stopped: ${projector.failure}` : projector.state],
      ...projector.lag.map(({ topic, partition, committed, end }) => [
        `${topic}/${partition}`,
        `offset ${committed} of ${end}, ${end - committed} waiting`,
      ]),
      [
        'last fold',
        fold.last_finished_at ? `${fold.last_finished_at}, ${fold.last_elapsed_ms} ms` : 'none yet',
      ],
      ['to fold', `${fold.pending_batches} batches`],
      ['campaigns', `${tables.public_campaigns} public of ${tables.known_campaigns} known`],
      ['pledges', `${tables.known_pledges} ledger rows`],
      ['active keys', String(tables.active_keys)],
      ['rejects', String(status.rejects.total)],
    ]
    for (const [name = '', text] of lines) io.stdout.write(`${name.padEnd(14)}${text}\n`)
    return 0
  },
}
