import { databasesOf, kafkaSettings, namedDatabases, serverSettings } from '../distributed/settings.ts'
import { withAdmin } from '../log/kafka/client.ts'
import { compactionWarnings, readCompaction } from '../log/kafka/topic-settings.ts'
import { ensureTopics } from '../log/kafka/topics.ts'
import { closing } from '../runtime/async/closing.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { checkParts } from '../tables/broken-parts.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import { generationOf } from '../tables/generation-log.ts'
import { migrate } from '../tables/schema/migrate.ts'
import { createRoles, definerUser } from '../tables/schema/roles.ts'
import { checkShards, onEveryShard, openShards } from '../tables/shards.ts'
import { type Command, type Io, jsonOption, printJson, readArguments } from './command.ts'
import { printableLines } from './printable.ts'

export const migrateCommand: Command = {
  help: {
    call: 'migrate [--json]',
    does:
      'Brings the tables of the configured ClickHouse up to date: runs the SQL files of contracts/tables that have not run yet, creates ' +
      'or checks the Kafka topics, and creates the roles if the server allows it. npm start does this by itself for a data directory.',
    options: jsonOption,
    examples: ['migrate'],
    cost: 'A few seconds. It may run again at any time.',
  },

  async run(args, io) {
    const { values } = readArguments(args, jsonOption)
    const done = await migrateDistributed(readConfig(process.env))
    if (values.json) printJson(io, done)
    else printDone(done, io)
    return 0
  },
}

interface Done {
  /** Names of the SQL files that ran. */
  applied: string[]
  topics: string[]
  /** What an operator should change in topics that were there. */
  warnings: string[]
  /** Why the roles were not created; null if they were. */
  roles_refused: string | null
  /** The rights without which the views do not read as pledgeview_definer, but as the user who runs this. */
  definer_lacks: string[]
}

async function migrateDistributed(config: Config): Promise<Done> {
  const logger = createLogger('error')
  const kafka = kafkaSettings(config)
  const topics = await ensureTopics(kafka, config, { create: config.PLEDGEVIEW_KAFKA_CREATE_TOPICS, logger })
  const compaction = await withAdmin(kafka, logger, admin => readCompaction({ admin, names: kafka }))
  const warnings = compactionWarnings(compaction, config.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS)
  return closing(async open => {
    const tables = open(openTables(serverSettings(config)))
    const names = namedDatabases(config)
    const { PLEDGEVIEW_CLICKHOUSE_CLUSTER: cluster, PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: urls } = config
    const first = generationOf(names, 1)
    const shards = urls && open(openShards(serverSettings(config), urls, first))
    if (shards && cluster !== undefined) await checkShards(shards, cluster)
    const all = shards ? onEveryShard(shards.shards) : tables
    const roles = await createRoles(all, first, { cluster })
    const applied = await migrate(all, names, roles.options)
    const current = databasesOf(config)
    await current.follow(tables)
    const databases = generationOf(names, current.generation)
    await checkParts(shards?.shards.map(shard => shard.tables) ?? [tables], databases)
    return {
      ...{ applied, topics, warnings },
      ...{ roles_refused: roles.refused ?? null, definer_lacks: roles.definerLacks },
    }
  })
}

export function printDone(
  { applied, topics, warnings, roles_refused, definer_lacks }: Done,
  io: Pick<Io, 'stdout' | 'stderr'>,
): void {
  io.stdout.write(applied.length > 0 ? `applied ${applied.join(', ')}\n` : 'the tables are up to date\n')
  if (topics.length > 0) io.stdout.write(`created the topics ${topics.join(', ')}\n`)
  for (const warning of warnings) io.stderr.write(`${printableLines(warning)}\n`)
  if (roles_refused)
    io.stderr.write(`The server refused to create the roles: ${printableLines(roles_refused)}\n`)
  if (definer_lacks.length > 0)
    io.stderr.write(
      `So the views read with all rights of the user of PLEDGEVIEW_CLICKHOUSE_USER. Give ${definerUser} what it lacks (deploy/deploy.md, ` +
        `"Roles"), and run this again:\n${definer_lacks.map(grant => `  ${grant} TO ${definerUser}\n`).join('')}`,
    )
}
