/**
 * `npm run stack`: the distributed form on this machine like a small production, to try by hand (ports.ts has its help). It prints all
 * addresses and a key, and removes everything on Ctrl-C.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import PostalMime from 'postal-mime'
import type { SMTPServerOptions } from 'smtp-server'
import { appendDemo, runTrickle } from '../../../services/demo/load-demo.ts'
import { kafkaSettings, stateEncoderOf } from '../../../services/distributed/settings.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import { type ShardServers, startShards } from '../clickhouse/shards.ts'
import { type Addresses, type Deployment, deploy } from '../deployment/deployment.ts'
import { localServices } from '../deployment/local-services.ts'
import { makeDataDirectory } from '../deployment/service-process.ts'
import { headerFlags, issueCredentials } from '../events/kickstarter.ts'
import { silent } from '../kafka/topics.ts'
import { startMailServer } from '../portal/mail-server.ts'
import * as parts from './parts.ts'
import { checkPorts, helpText, readArguments, type StackArguments, StackError } from './ports.ts'
import { type Part, processOf, type RunningPart, superviseParts } from './supervisor.ts'

// Each server and client of the services ends its process at the exit of this one.
process.setMaxListeners(40)
const trickleMs = 1_000

async function main(args: StackArguments, interrupted: Promise<unknown>): Promise<void> {
  const say = (words: string) => void process.stderr.write(`${words}\n`)
  const { ports, shards: shardCount } = args
  await checkPorts(ports, [
    ...(shardCount === undefined ? [] : (['clickhouse-port'] as const)),
    ...(parts.hasPrometheus ? [] : (['prometheus-port'] as const)),
  ])
  say(
    'checking that Kafka, Redis and the schema registry are installed (the first time this downloads them) ...',
  )
  const requirement = await localServices({ withSchemaRegistry: true })
  if (!requirement.isMet) throw new StackError(requirement.reason, 1)

  const folder = makeDataDirectory()
  const supervisor = superviseParts(say)
  const kafka = parts.kafkaPart(ports['kafka-port'])
  const clickHouse = parts.clickHousePart(ports['clickhouse-port'], folder.path)
  const running: [string, RunningPart][] = []
  const start = async (part: Part) => void running.push([part.name, await supervisor.start(part)])
  let shards: ShardServers | undefined
  let deployment: Deployment | undefined
  const mails = await startMailServer({ onData: printMail })
  const ended = new AbortController()
  async function startAll(): Promise<void> {
    await start(kafka)
    if (shardCount === undefined) await start(clickHouse)
    else {
      say(`starting ClickHouse, ${shardCount} shards ...`)
      shards = await startShards(shardCount, { hasLinks: true, programPassword: parts.plainPassword })
      for (const index of shards.servers.keys()) await start(parts.shardPart(shards, index))
    }
    await start(parts.redisPart(ports['redis-port']))
    const register = async () => deployment && stateEncoderOf(readConfig(deployment.environment))
    await start(parts.registryPart(ports['registry-port'], register))

    say('creating the topics and the tables ...')
    const server = shards?.servers[0] ?? clickHouse.server()
    const addresses: Addresses = {
      kafka: `127.0.0.1:${ports['kafka-port']}`,
      clickHouse: server,
      ...(shards && { cluster: shards.environment }),
      redis: `redis://127.0.0.1:${ports['redis-port']}`,
      schemaRegistry: `http://127.0.0.1:${ports['registry-port']}/apis/ccompat/v7`,
    }
    const portalUrl = `http://127.0.0.1:${ports['portal-port']}`
    const apiUrl = `http://127.0.0.1:${ports['api-port']}/api/v1`
    deployment = await deploy(addresses, {
      PLEDGEVIEW_PORTAL_KEY: randomBytes(32).toString('hex'),
      PLEDGEVIEW_PORTAL_URL: portalUrl,
      PLEDGEVIEW_API_URL: apiUrl,
      PLEDGEVIEW_SQL_URL: server.url,
      PLEDGEVIEW_SMTP_URL: `${mails.url}?tls=off`,
      PLEDGEVIEW_MAIL_FROM: 'Pledgeview <no-reply@portal.example>',
    })
    const { environment } = deployment
    const ops: Record<string, number> = {}
    const program = (name: string, command: string, more: Record<string, string> = {}) => {
      const port = ports['ops-port'] + Object.keys(ops).length
      ops[name] = port
      const settings = { ...environment, PLEDGEVIEW_OPS_PORT: String(port), ...more }
      return start(parts.programPart(name, command, settings))
    }
    await program('query service 1', 'query', { PLEDGEVIEW_PORT: String(ports['api-port']) })
    await program('query service 2', 'query', { PLEDGEVIEW_PORT: String(ports['api-2-port']) })
    await program('portal', 'portal', { PLEDGEVIEW_PORTAL_PORT: String(ports['portal-port']) })
    await program('projector 1', 'projector')
    await program('projector 2', 'projector')
    if (parts.hasPrometheus) await start(parts.prometheusPart(ports['prometheus-port'], folder.path, ops))
    // Before the demo, because a new key waits for a fold.
    say('issuing a key ...')
    const key = await issueCredentials(deployment.command, 'stack')
    if (args.hasDemo) {
      say('loading the demo platform ...')
      await loadDemo(environment, ended.signal)
    }
    process.stdout.write(summary(running, { apiUrl, portalUrl, key, environment }))
  }
  try {
    await Promise.race([interrupted, startAll().then(() => interrupted)])
  } finally {
    say('stopping all; the data is removed ...')
    ended.abort()
    await supervisor.stop()
    await Promise.all([kafka.remove(), shards?.stop(), mails.close()])
    folder.remove()
  }
}

/** Appends the history, and continues it, a little each second. What Kafka does not take is left out. */
async function loadDemo(environment: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
  const config = readConfig(environment)
  const writer = await openKafkaWriter(kafkaSettings(config), { logger: silent })
  const encode = await stateEncoderOf(config)
  const endMs = Date.now()
  await appendDemo(writer, endMs, undefined, encode)
  const lasting = {
    ...writer,
    append: (records: Parameters<typeof writer.append>[0]) => writer.append(records).catch(() => {}),
  }
  void runTrickle(lasting, { endMs, intervalMs: trickleMs, signal, encode }, createRuntime(silent)).finally(
    () => writer.close(),
  )
}

const printMail: NonNullable<SMTPServerOptions['onData']> = async (stream, session, done) => {
  const { subject, text: body } = await PostalMime.parse(await text(stream))
  process.stdout.write(
    `\nMail to ${session.envelope.rcptTo.map(({ address }) => address)}: ${subject}\n${body}\n`,
  )
  done()
}

function summary(
  running: readonly [string, RunningPart][],
  {
    apiUrl,
    portalUrl,
    key,
    environment,
  }: { apiUrl: string; portalUrl: string; key: Readonly<Record<string, string>>; environment: object },
): string {
  // The parts have the settings of whoever starts the stack, so the commands need them too: the platform's currency, for example.
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name.startsWith('PLEDGEVIEW_')),
  )
  return `
Everything runs:

${running.map(([name, part]) => `  ${name.padEnd(18)}${part.place}${processOf(part)}`).join('\n')}

A key was issued. Its secret is not shown again. Try:

  curl -s ${headerFlags(key)} '${apiUrl}/projects?limit=3'

Open ${portalUrl} for the portal: the mails that it sends are printed here. End a process above with kill -9, and see what happens.
For the commands (events append, keys, status, explain, rejects, purge, rebuild), paste this in another terminal first:

${Object.entries({ ...inherited, ...environment })
  .map(([name, value]) => `export ${name}='${value}'`)
  .join('\n')}

Ctrl-C stops everything and removes its data.
`
}

try {
  const args = readArguments(process.argv.slice(2))
  if (args) await main(args, Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]))
  else process.stdout.write(helpText)
} catch (cause) {
  process.stderr.write(`${cause instanceof StackError ? cause.message : (cause as Error).stack}\n`)
  process.exitCode = cause instanceof StackError ? cause.code : 1
}
