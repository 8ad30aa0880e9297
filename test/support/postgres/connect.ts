/** Kafka Connect with Debezium's connector for Postgres, with the files that the guide for producers names. A test may kill it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../../services/runtime/free-port.ts'
import { folderOf, type Jars, jarsRequirement } from '../kafka/jars.ts'
import type { Postgres } from './postgres.ts'

const files = new URL('../../../contracts/events/postgres/', import.meta.url).pathname
const pom = join(files, 'pom.xml')
const debezium = /<debezium.version>(.*)</.exec(readFileSync(pom, 'utf8'))?.[1]
const jars: Jars = { name: `connect-${debezium}`, pom, versions: {} }

/** Downloads the jars if they are missing. Never rejects. */
export const connectRequirement = () => jarsRequirement(jars)

export interface Connect {
  /** Sends SIGKILL. */
  kill(): Promise<void>
  /** Starts it again, with the offsets that it kept. */
  restart(): Promise<void>
  /** What the connector says of itself; a task that failed has a trace. */
  status(): Promise<string>
  stop(): Promise<void>
}

// Only a hang takes this long.
const startMsMax = 120_000
const java = [
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
]

/** Resolves when the connector runs. Rejects with the end of its log if it does not. */
export async function startConnect(postgres: Postgres, brokers: string): Promise<Connect> {
  const directory = mkdtempSync(join(tmpdir(), 'connect-'))
  const port = await freePort()
  const log = join(directory, 'log')
  let child: ChildProcess

  async function status(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${port}/connectors/pledgeview/status`)
    return answer.text()
  }

  async function start(): Promise<void> {
    const output = openSync(log, 'a')
    child = spawn(
      'java',
      [
        ...java,
        ...['-cp', `${folderOf(jars)}/*`, 'org.apache.kafka.connect.cli.ConnectStandalone'],
        ...[join(files, 'connect.properties'), join(files, 'connector.json')],
      ],
      {
        stdio: ['ignore', output, output],
        env: {
          ...process.env,
          ...postgres.environment,
          PLEDGEVIEW_KAFKA_BROKERS: brokers,
          CONNECT_OFFSETS: join(directory, 'offsets'),
          CONNECT_PORT: `${port}`,
        },
      },
    )
    closeSync(output)
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    const deadline = performance.now() + startMsMax
    while (!(await status().catch(() => '')).includes('"tasks":[{"id":0,"state":"RUNNING"')) {
      if (child.exitCode !== null || performance.now() > deadline) {
        child.kill('SIGKILL')
        throw new Error(`Kafka Connect does not run:\n${readFileSync(log, 'utf8').slice(-4_000)}`)
      }
      await delay(200)
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  await start()
  return {
    kill: () => end('SIGKILL'),
    restart: start,
    status,
    async stop() {
      await end('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
