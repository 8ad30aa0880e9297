/**
 * ClickHouse's own servers as the shards of one cluster, with the tables, views and rights of the cluster form. The servers know each
 * other by `remote_servers` and a secret, and check the rights of the person who asks. For what people are counted from, they know each
 * other by a user of their own.
 */
import { freePort } from '../../../services/runtime/free-port.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { clusterSettings, distributedDatabases } from '../../../services/tables/schema/cluster.ts'
import { countsClusterOf } from '../../../services/tables/schema/cluster-views.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { createRoles, definerUser, readRole } from '../../../services/tables/schema/roles.ts'
import type { MigrateOptions } from '../../../services/tables/schema/sql-files.ts'
import { onEveryShard, openShards } from '../../../services/tables/shards.ts'
import { startProxy } from '../kafka/proxy.ts'
import { type ClickHouse, settingsFor, startClickHouse } from './clickhouse.ts'

export type ShardServers = Awaited<ReturnType<typeof startShards>>

export const clusterName = 'main'
export const cluster: MigrateOptions = { cluster: clusterName }

export const shardUsers = ['pledgeview_query', 'pledgeview_analyst', 'pledgeview_portal'] as const
export type ShardUser = (typeof shardUsers)[number]

const counterUser = 'pledgeview_counter'
const counterPassword = 'known to the servers, too'

// Otherwise an analyst's threads wait for every other thread of the machine: on a busy one, for minutes.
const notLast = { profile: 'analyst', os_threads_nice_value_query: 0 }

// Several servers share a machine with other suites.
const memoryBytesMax = 1_500_000_000

/**
 * Starts the servers, which takes as long as one, and migrates them. If that fails, none is left. `hasLinks`: whether the servers reach
 * each other through `links`. `programPassword`: of the program's user; see clickhouse.ts.
 */
export async function startShards(
  count: number,
  { hasLinks = false, programPassword }: { hasLinks?: boolean; programPassword?: string } = {},
) {
  const ports = await Promise.all(
    Array.from({ length: count }, async () => ({ http: await freePort(), native: await freePort() })),
  )
  const links = hasLinks
    ? await Promise.all(ports.map(({ native }) => startProxy({ targetPort: native })))
    : []
  const optionsOf = (server: number) => ({
    httpPort: ports[server]?.http,
    nativePort: ports[server]?.native,
    memoryBytesMax,
    ...(programPassword !== undefined && { programPassword }),
    more: serverConfiguration(
      server,
      // A server knows itself by its own port, so it reads its own shard without a connection.
      ports.map(({ native }, other) => (other === server ? native : (links[other]?.port ?? native))),
    ),
    moreUsers: { users: usersOfCluster(), profiles: { analyst_on_shards: notLast } },
  })
  const started = await Promise.allSettled(ports.map((_, server) => startClickHouse(optionsOf(server))))
  const first = started.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
  const servers = [...first]
  const opened: Tables[] = []

  /** Closes all clients, and ends the servers. */
  async function stop(): Promise<void> {
    await Promise.all(opened.map(tables => tables.close()))
    // Those that were restarted leave the directory to the one that made it.
    await Promise.all(servers.map(server => server.kill()))
    await Promise.all(first.map(server => server.stop()))
    await Promise.all(links.map(link => link.close()))
  }

  function open(server: number, user?: string): Tables {
    const address = servers[server]
    if (!address) throw new Error(`there is no server ${server}`)
    const login = user === undefined ? {} : { user, password: '' }
    const tables = openTables({ ...settingsFor(address), ...login, statementSettings: clusterSettings })
    opened.push(tables)
    return tables
  }

  const failed = started.find(one => one.status === 'rejected')
  if (failed) {
    await stop()
    throw failed.reason
  }
  const { shards } = openShards(
    { ...settingsFor(servers[0] as ClickHouse), statementSettings: clusterSettings },
    servers.map(({ url }) => url),
    defaultDatabases,
  )
  opened.push(...shards.map(({ tables }) => tables))
  const shardServers = {
    /** As they run now: `restart` replaces one. */
    servers: servers as readonly ClickHouse[],
    /** The connections of the other servers to each server, if they were asked for. A test may hold or cut them. */
    links,
    /** The settings of processes and commands of the program, beside those of any server. */
    environment: {
      PLEDGEVIEW_CLICKHOUSE_CLUSTER: clusterName,
      PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: servers.map(({ url }) => url).join(','),
    },
    /** The tables of each shard, for its fold worker. */
    shards,
    /** The whole tables, through the first server. */
    tables: open(0),
    databases: distributedDatabases(defaultDatabases),
    /** The whole tables as this user, who has the rights of the role of the same name. */
    as: (user: ShardUser, server = 0) => open(server, user),
    /** Runs `migrate` on each server, as it runs on a cluster. */
    async migrate(): Promise<void> {
      const all = onEveryShard(shards)
      const { options } = await createRoles(all, defaultDatabases, cluster)
      await migrate(all, defaultDatabases, options)
    },
    /** Starts a server again that was killed, with its files and ports. */
    async restart(server: number): Promise<void> {
      const { directory } = servers[server] as ClickHouse
      servers[server] = await startClickHouse({ ...optionsOf(server), directory })
    },
    stop,
  }
  try {
    await shardServers.migrate()
    return shardServers
  } catch (error) {
    await stop()
    throw error
  }
}

function serverConfiguration(server: number, ports: readonly number[]) {
  return {
    macros: { shard: `shard-${server + 1}` },
    remote_servers: {
      [clusterName]: {
        secret: 'known to the servers of the cluster only',
        shard: ports.map(port => ({ replica: { host: '127.0.0.1', port } })),
      },
      [countsClusterOf(clusterName)]: {
        shard: ports.map(port => ({
          replica: { host: '127.0.0.1', port, user: counterUser, password: counterPassword },
        })),
      },
    },
  }
}

/** The users that read for others, and people, who have no password. Each has just the rights that it has on a cluster. */
function usersOfCluster() {
  const userOf = (name: string, own: object) => ({
    networks: { ip: '127.0.0.1' },
    profile: name === 'pledgeview_analyst' ? 'analyst_on_shards' : 'default',
    quota: 'default',
    grants: { query: readRole(name, defaultDatabases, cluster).grants },
    ...own,
  })
  const definer = { password_sha256_hex: '0'.repeat(64), networks: {}, profile: 'definer' }
  return {
    [definerUser]: userOf(definerUser, definer),
    [counterUser]: userOf(counterUser, { password: counterPassword }),
    ...Object.fromEntries(shardUsers.map(role => [role, userOf(role, { password: '' })])),
  }
}
