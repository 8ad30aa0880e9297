/** The processes and commands of the distributed form, on services that already run. */

import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { ClickHouseAddress } from '../clickhouse/clickhouse.ts'
import { type CommandResult, runCli, type ServiceProcess, startProcess } from './service-process.ts'

/** The addresses of the services. Without Redis, each query process limits and caches alone. */
export interface Addresses {
  /** host:port */
  kafka: string
  clickHouse: ClickHouseAddress
  /** If `clickHouse` is a server of a cluster: the settings of the cluster. Its tables are there already (shards.ts). */
  cluster?: Readonly<Record<string, string>>
  redis?: string
  schemaRegistry?: string
}

type Settings = Readonly<Record<string, string>>
export type Deployment = Awaited<ReturnType<typeof deploy>>

/** Brings topics and tables up to date, and starts no process yet. Throws the output of `migrate` if it fails. */
export async function deploy(addresses: Addresses, settings: Settings = {}) {
  const secret = () => randomBytes(32).toString('hex')
  const environment: Settings = {
    PLEDGEVIEW_KAFKA_BROKERS: addresses.kafka,
    PLEDGEVIEW_CLICKHOUSE_URL: addresses.clickHouse.url,
    PLEDGEVIEW_CLICKHOUSE_USER: addresses.clickHouse.user,
    PLEDGEVIEW_CLICKHOUSE_PASSWORD: addresses.clickHouse.password,
    PLEDGEVIEW_REDIS_URL: addresses.redis ?? '',
    PLEDGEVIEW_SCHEMA_REGISTRY_URL: addresses.schemaRegistry ?? '',
    PLEDGEVIEW_KEY_PEPPER: secret(),
    PLEDGEVIEW_BACKER_KEY: secret(),
    PLEDGEVIEW_PORT: '0',
    PLEDGEVIEW_OPS_PORT: '0',
    ...addresses.cluster,
    ...settings,
  }
  const processes: ServiceProcess[] = []
  const projectors: ServiceProcess[] = []
  async function start(command: string, more: Settings = {}) {
    const started = await startProcess([command], { ...environment, ...more })
    processes.push(started)
    return started
  }
  const deployment = {
    /** The environment of processes and commands. */
    environment,
    async startProjector(more?: Settings): Promise<ServiceProcess> {
      const projector = await start('projector', more)
      projectors.push(projector)
      return projector
    },
    startQuery: (more?: Settings) => start('query', more),
    startPortal: (more?: Settings) => start('portal', more),
    /** Runs a command to its end. */
    command: (args: readonly string[], stdin?: Readable | string, more?: Settings): Promise<CommandResult> =>
      runCli(args, stdin, { ...environment, ...more }),
    /** The projectors that run. */
    projectors: (): readonly ServiceProcess[] =>
      projectors.filter(({ child }) => child.exitCode === null && child.signalCode === null),
    /** Interrupts every process that still runs. */
    async stop(): Promise<void> {
      await Promise.all(processes.map(started => started.stop()))
    },
  }
  const migrated = await deployment.command(['migrate'])
  if (migrated.code !== 0) throw new Error(`the deployment could not be migrated: ${migrated.stderr}`)
  return deployment
}
