/** Kafka Connect with Debezium's connector for Postgres, with the files that the guide for producers names. A test may kill it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../services/runtime/free-port.ts'
import { folderOf, type Jars, jarsRequirement } from '../kafka/jars.ts'
import { endProgram, killAtExit, untilAnswers } from '../runner/programs.ts'
import type { Postgres } from './postgres.ts'

const files = fileURLToPath(new URL('../../../contracts/events/postgres/', import.meta.url))
const guide = fileURLToPath(new URL('../../../contracts/events/from-a-database.md', import.meta.url))
/** The connector's user, as the guide makes it. */
const debeziumSql = /^CREATE ROLE debezium [^`]*/m.exec(readFileSync(guide, 'utf8'))?.[0] ?? ''
const pom = join(files, 'pom.xml')
const debezium = /<debezium.version>(.*)</.exec(readFileSync(pom, 'utf8'))?.[1]
const jars: Jars = { name: `connect-${debezium}`, pom, versions: {} }

/** Downloads the jars if they are missing. Never rejects. */
export const connectRequirement = () => jarsRequirement(jars)

export type Connect = Awaited<ReturnType<typeof startConnect>>

const java = [
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
]

/** Resolves when the connector runs, as a user of its own. `outbox.sql` has run. Rejects with the end of its log if it does not. */
export async function startConnect(postgres: Postgres, brokers: string) {
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
          PGUSER: 'debezium',
          PLEDGEVIEW_KAFKA_BROKERS: brokers,
          CONNECT_OFFSETS: join(directory, 'offsets'),
          CONNECT_PORT: `${port}`,
        },
      },
    )
    closeSync(output)
    killAtExit(child)
    await untilAnswers(
      child,
      'Kafka Connect',
      async () => (await status()).includes('"tasks":[{"id":0,"state":"RUNNING"'),
      () => readFileSync(log, 'utf8'),
    )
  }

  await postgres.runAsAdmin(debeziumSql)
  await start()
  return {
    /** Sends SIGKILL. */
    kill: () => endProgram(child),
    /** Starts it again, with the offsets that it kept. */
    restart: start,
    /** What the connector says of itself; a task that failed has a trace. */
    status,
    async stop(): Promise<void> {
      await endProgram(child)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
