/** The parts of `npm run stack`, each with its start on its port and the reason of its end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ClickHouse, startClickHouse } from '../clickhouse/clickhouse.ts'
import type { ShardServers } from '../clickhouse/shards.ts'
import { launchProcess } from '../deployment/service-process.ts'
import { type KafkaBroker, startKafka } from '../kafka/broker.ts'
import { newestKafka } from '../kafka/jars.ts'
import { killedOften } from '../kafka/test-properties.ts'
import { endProgram, killAtExit, untilAnswers } from '../runner/programs.ts'
import { startApicurio } from '../servers/apicurio.ts'
import type { Part, RunningPart } from './supervisor.ts'

/** Of ClickHouse's user, to type by hand. Only this machine reaches it. */
export const plainPassword = 'pledgeview'

const rules = fileURLToPath(new URL('../../../deploy/alerts/*.rules.yml', import.meta.url))

export const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0

/** Keeps its data when it is started again. `remove` ends it for good. */
export function kafkaPart(port: number): Part & { remove(): Promise<void> } {
  let broker: KafkaBroker | undefined
  return {
    name: 'Kafka',
    async start() {
      if (broker) await broker.resume()
      else broker = await startKafka(newestKafka, killedOften, port)
      return { ...runningOf(broker.child(), `127.0.0.1:${port}`), stop: async () => {} }
    },
    remove: async () => broker?.stop(),
  }
}

export function clickHousePart(port: number, directory: string): Part & { server(): ClickHouse } {
  let server: ClickHouse
  return {
    name: 'ClickHouse',
    async start() {
      server = await startClickHouse({ directory, httpPort: port, programPassword: plainPassword })
      return runningServer(server)
    },
    server: () => server,
  }
}

/** A server that `startShards` has started already. */
export function shardPart(shards: ShardServers, index: number): Part {
  let isFirst = true
  return {
    name: `shard ${index + 1}`,
    async start() {
      if (!isFirst) await shards.restart(index)
      isFirst = false
      return { ...runningServer(shards.servers[index] as ClickHouse), stop: async () => {} }
    },
  }
}

function runningServer(server: ClickHouse): RunningPart {
  const { url, user, pid, ended } = server
  return { place: `${url} (user ${user}, password ${plainPassword})`, pid, ended, stop: () => server.kill() }
}

/** It keeps its schemas in memory: `onStart` registers them, in the same order, so under the same ids. */
export function registryPart(port: number, onStart: () => Promise<unknown>): Part {
  return {
    name: 'schema registry',
    async start() {
      const registry = await startApicurio(port)
      await onStart()
      return { ...runningOf(registry.child, registry.url), stop: registry.close }
    },
  }
}

export function redisPart(port: number): Part {
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no']
  return readyPart('Redis', 'redis-server', args, 'Ready to accept connections', `redis://127.0.0.1:${port}`)
}

/** Prometheus with the alert rules, which looks at the ops ports each five seconds. */
export function prometheusPart(
  port: number,
  directory: string,
  opsPorts: Readonly<Record<string, number>>,
): Part {
  // All projectors in one job: the rules sum over them.
  const jobs = Object.entries(
    Object.groupBy(Object.entries(opsPorts), ([name]) => name.replace(/ \d$/, '')),
  ).map(
    ([name, ofJob = []]) =>
      `  - { job_name: pledgeview-${name.replaceAll(' ', '-')}, static_configs: [{ targets: [${ofJob.map(([, ops]) => `'127.0.0.1:${ops}'`)}] }] }`,
  )
  const file = join(directory, 'prometheus.yml')
  writeFileSync(
    file,
    `global: { scrape_interval: 5s, evaluation_interval: 5s }\nrule_files: ['${rules}']\nscrape_configs:\n${jobs.join('\n')}\n`,
  )
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(directory, 'prometheus')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const sign = 'Server is ready to receive web requests'
  return readyPart('Prometheus', 'prometheus', args, sign, `http://127.0.0.1:${port}/alerts`)
}

/** A process of the program. */
export function programPart(
  name: string,
  command: string,
  environment: Readonly<Record<string, string>>,
): Part {
  return {
    name,
    async start() {
      const { child, output, started } = launchProcess([command], environment)
      const { apiUrl, opsUrl, stop } = await started
      const place = apiUrl === '' ? `ops: ${opsUrl}` : `${apiUrl} (ops: ${opsUrl})`
      return { ...runningOf(child, place, output), stop: () => stop() }
    },
  }
}

/** A program of this machine that prints this sign when it is ready. */
function readyPart(
  name: string,
  program: string,
  args: readonly string[],
  sign: string,
  place: string,
): Part {
  return {
    name,
    async start() {
      const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      killAtExit(child)
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => {
          output = (output + data.toString()).slice(-4_000)
        })
      const running = runningOf(child, place, () => output)
      await untilAnswers(
        child,
        name,
        async () => output.includes(sign),
        () => output,
      )
      return running
    },
  }
}

function runningOf(child: ChildProcess, place: string, output = () => ''): RunningPart {
  const ended = new Promise<string>(resolve => {
    const end = () => resolve(reasonOf(child, output()))
    if (child.exitCode !== null || child.signalCode !== null) end()
    child.once('close', end)
    child.once('error', ({ message }) => resolve(message))
  })
  return { place, pid: child.pid, ended, stop: () => endProgram(child, 'SIGTERM') }
}

/** How it ended, and the last error that it logged. */
function reasonOf({ exitCode, signalCode }: ChildProcess, output: string): string {
  const how = signalCode === null ? `exit code ${exitCode}` : `killed by ${signalCode}`
  const lines = output.trim().split('\n')
  const said =
    lines.findLast(line => line.startsWith('pledgeview: ')) ??
    lines.findLast(line => /"level":"?(50|60|error|fatal)|^\S*(Error|error)\b/.test(line)) ??
    lines.at(-1)
  return signalCode !== null || said === undefined || said === '' ? how : `${how}, ${said.slice(0, 500)}`
}
