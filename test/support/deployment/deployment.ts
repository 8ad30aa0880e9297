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

export interface Deployment {
  /** The environment of processes and commands. */
  environment: Readonly<Record<string, string>>
  startProjector(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>
  startQuery(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>
  startPortal(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>
  /** Runs a command to its end. */
  command(
    args: readonly string[],
    stdin?: Readable | string,
    settings?: Readonly<Record<string, string>>,
  ): Promise<CommandResult>
  /** The projectors that run. */
  projectors(): readonly ServiceProcess[]
  /** Interrupts every process that still runs. */
  stop(): Promise<void>
}

/** Brings topics and tables up to date, and starts no process yet. Throws the output of `migrate` if it fails. */
export async function deploy(
  addresses: Addresses,
  settings: Readonly<Record<string, string>> = {},
): Promise<Deployment> {
  const secret = () => randomBytes(32).toString('hex')
  const environment = {
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
  async function start(command: string, more: Readonly<Record<string, string>> = {}) {
    const started = await startProcess([command], { ...environment, ...more })
    processes.push(started)
    return started
  }
  const deployment: Deployment = {
    environment,
    async startProjector(more) {
      const projector = await start('projector', more)
      projectors.push(projector)
      return projector
    },
    startQuery: more => start('query', more),
    startPortal: more => start('portal', more),
    command: (args, stdin, more) => runCli(args, stdin, { ...environment, ...more }),
    projectors: () => projectors.filter(({ child }) => child.exitCode === null && child.signalCode === null),
    async stop() {
      await Promise.all(processes.map(started => started.stop()))
    },
  }
  const migrated = await deployment.command(['migrate'])
  if (migrated.code !== 0) throw new Error(`the deployment could not be migrated: ${migrated.stderr}`)
  return deployment
}
