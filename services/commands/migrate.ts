import { openDataDirectory } from '../embedded/data-directory.ts'
import { type Config, readConfig } from '../shared/config.ts'
import { definitionsOf, isDistributed, serverSettings, topicSettings } from '../shared/distributed.ts'
import { lockDataDirectory } from '../shared/event-log/journal/lock.ts'
import { ensureTopics } from '../shared/event-log/kafka/topics.ts'
import { createLogger } from '../shared/logger.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { createRoles } from '../shared/tables/clickhouse-server-roles.ts'
import { migrate } from '../shared/tables/migrate.ts'
import { defaultDatabases } from '../shared/tables/port.ts'
import { type Command, defaultDataDirectory, type Io, printJson, readArguments } from './command.ts'

export const migrateCommand: Command = {
  usage: `usage: pledgeview migrate [--data-dir D] [--json]

Runs the table definitions that have not run yet. npm start does so by itself. Distributed (PLEDGEVIEW_KAFKA_BROKERS is
set and --data-dir is not given) it also makes or checks the topics, and makes the roles where the server allows it.

  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: { 'data-dir': { type: 'string' }, json: { type: 'boolean', default: false } },
    })
    const config = readConfig(process.env)
    const isEmbedded = values['data-dir'] !== undefined || !isDistributed(config)
    const done = isEmbedded
      ? { applied: await migrateEmbedded(values['data-dir'] ?? defaultDataDirectory) }
      : await migrateDistributed(config)
    if (values.json) printJson(io, done)
    else printDone(done, io)
    return 0
  },
}

interface Done {
  /** Names of the files that ran. */
  applied: string[]
  topics?: string[]
  /** Why the roles were not made; null where they were. */
  roles_refused?: string | null
}

async function migrateEmbedded(root: string): Promise<string[]> {
  const directory = openDataDirectory(root)
  const lock = lockDataDirectory(directory.root)
  try {
    const { openChdbTables } = await import('../shared/tables/chdb.ts')
    const tables = openChdbTables(directory.tables)
    try {
      return await migrate(tables, defaultDatabases)
    } finally {
      await tables.close()
    }
  } finally {
    lock.release()
  }
}

async function migrateDistributed(config: Config): Promise<Done> {
  const logger = createLogger('error')
  const topics = await ensureTopics(topicSettings(config), {
    create: config.PLEDGEVIEW_KAFKA_CREATE_TOPICS,
    logger,
  })
  const tables = openServerTables(serverSettings(config))
  try {
    const { databases, options } = definitionsOf(config)
    const applied = await migrate(tables, databases, options)
    const { refused } = await createRoles(tables, databases, options)
    return { applied, topics, roles_refused: refused ?? null }
  } finally {
    await tables.close()
  }
}

function printDone({ applied, topics = [], roles_refused }: Done, io: Io): void {
  io.stdout.write(applied.length > 0 ? `applied ${applied.join(', ')}\n` : 'the tables are up to date\n')
  if (topics.length > 0) io.stdout.write(`made the topics ${topics.join(', ')}\n`)
  if (roles_refused) io.stderr.write(`The server does not let us make the roles: ${roles_refused}\n`)
}
