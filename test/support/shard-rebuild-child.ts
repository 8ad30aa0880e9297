/**
 * A process that rebuilds the shards of a cluster from a journal. Before the swap of the second shard it sends `between`, and stands
 * still until it is killed.
 *
 *     fork('test/support/shard-rebuild-child.ts', [JSON.stringify({ journal, foldMsMax, servers })])
 */
import { pino } from 'pino'
import { nameShards } from '../../services/generations/cluster.ts'
import { runRebuild } from '../../services/generations/rebuild.ts'
import { openJournalHistory } from '../../services/log/local/history.ts'
import { readConfig } from '../../services/runtime/config.ts'
import { openTables } from '../../services/tables/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { distributedDatabases, replicatedSettings } from '../../services/tables/replicated.ts'
import { openShards } from '../../services/tables/shards.ts'
import { type ClickHouseAddress, settingsFor } from './clickhouse.ts'
import { obstructed } from './faulty-tables.ts'
import { hashBacker } from './model-tables.ts'
import { wholeRequest } from './rebuild-request.ts'

export interface ShardRebuildArguments {
  journal: string
  foldMsMax: number
  servers: ClickHouseAddress[]
}

const { journal, foldMsMax, servers } = JSON.parse(process.argv[2] ?? '') as ShardRebuildArguments
const [first] = servers
if (!first) throw new Error('there is no server')
const settings = { ...settingsFor(first), statementSettings: replicatedSettings }
const urls = servers.map(({ url }) => url)
const { shards } = openShards(settings, urls, defaultDatabases)
let swapped: string | undefined
process.once('disconnect', () => process.exit())
await runRebuild(
  {
    tables: openTables(settings),
    databases: distributedDatabases(defaultDatabases),
    cluster: {
      name: 'main',
      shards: (await nameShards(shards)).map(shard => ({
        ...shard,
        tables: obstructed(shard.tables, {
          async before({ text }) {
            if (!text.startsWith('EXCHANGE TABLES')) return
            swapped ??= shard.name
            if (swapped === shard.name) return
            process.send?.('between')
            await new Promise(() => {})
          },
        }),
      })),
    },
    history: await openJournalHistory(journal),
    config: readConfig({
      PLEDGEVIEW_FOLD_MS_MAX: String(foldMsMax),
      PLEDGEVIEW_BATCH_MS_MAX: '20',
    }),
    hashBacker,
    run: `child-${process.pid}`,
    isAlone: false,
    logger: pino({ level: 'error' }, pino.destination({ dest: 2, sync: true })),
    onProgress: () => {},
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
  },
  wholeRequest,
  new AbortController().signal,
)
