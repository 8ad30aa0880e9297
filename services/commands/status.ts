import { withModel } from '../embedded/access.ts'
import { openExistingDataDirectory, type ServiceAddress } from '../embedded/data-directory.ts'
import { type TablesStatus, tablesStatus } from '../projector/status.ts'
import { type Config, readConfig } from '../shared/config.ts'
import {
  databasesOf,
  isDistributed,
  readerSettings,
  serverSettings,
  shardsOf,
} from '../shared/distributed.ts'
import { openJournalInspector } from '../shared/event-log/journal/inspector.ts'
import { openKafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import type { PartitionLag } from '../shared/event-log/port.ts'
import { createLogger } from '../shared/logger.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { type Command, defaultDataDirectory, type Io, printJson, readArguments } from './command.ts'

export const statusCommand: Command = {
  usage: `usage: pledgeview status [--data-dir D] [--json]

Asks the service that runs on the data directory; where none runs, opens the directory for a moment. Distributed
(PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given) it asks Kafka and ClickHouse; a single projector tells its
own at /status of its ops port.

  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: { 'data-dir': { type: 'string' }, json: { type: 'boolean', default: false } },
    })
    const config = readConfig(process.env)
    const isEmbedded = values['data-dir'] !== undefined || !isDistributed(config)
    const found = isEmbedded
      ? await embeddedStatus(values['data-dir'] ?? defaultDataDirectory, config)
      : await distributedStatus(config)
    if (values.json) printJson(io, found.status)
    else printStatus(found.heading, found.status, io)
    return 0
  },
}

interface ShownStatus extends TablesStatus {
  projector: { members?: number; lag: PartitionLag[] }
  rejects: { total: number }
}

/** What to print: lines that say who projects, and the rest. */
interface Found {
  heading: [name: string, text: string][]
  status: ShownStatus
}

async function embeddedStatus(root: string, config: Config): Promise<Found> {
  const directory = openExistingDataDirectory(root)
  const { service, ...found } = await withModel(directory, config, { isCaughtUp: false }, async access => ({
    service: shownService(access.service),
    ...(await access.status()),
  }))
  const inspector = openJournalInspector(directory.journal)
  const status = { service, ...found, rejects: { total: inspector.rejectCount() } }
  inspector.close()
  const { state, failure } = found.projector
  return {
    heading: [
      ['service', service ? `process ${service.pid}, port ${service.port}` : 'not running'],
      ['projector', failure ? `stopped: ${failure}` : state],
    ],
    status,
  }
}

function shownService(service: ServiceAddress | undefined): { pid: number; port: number } | null {
  return service ? { pid: service.pid, port: service.port } : null
}

async function distributedStatus(config: Config): Promise<Found> {
  const tables = openServerTables(serverSettings(config))
  const shards = await shardsOf(config)
  try {
    const inspector = await openKafkaInspector(readerSettings(config), { logger: createLogger('error') })
    try {
      const { members, lag } = await inspector.group()
      const total = await inspector.rejectCount()
      const ofTables = await tablesStatus({ tables, databases: databasesOf(config), ...shards })
      return {
        heading: [['projectors', String(members)]],
        status: { projector: { members, lag }, ...ofTables, rejects: { total } },
      }
    } finally {
      await inspector.close()
    }
  } finally {
    await shards?.close()
    await tables.close()
  }
}

function printStatus(
  heading: Found['heading'],
  { projector, fold, tables, rejects }: ShownStatus,
  io: Io,
): void {
  const lines = [
    ...heading,
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
    ['rejects', String(rejects.total)],
  ]
  for (const [name = '', text] of lines) io.stdout.write(`${name.padEnd(14)}${text}\n`)
}
