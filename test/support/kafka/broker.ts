/**
 * One real Kafka broker (KRaft, broker and controller in one process) on free loopback ports, in its own directory.
 *
 * It has a listener for each kind of connection that a test may need: plain, behind a proxy, with passwords, and with
 * passwords over TLS.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { endProgram, killAtExit, untilAnswers } from '../runner/programs.ts'
import { type Certificate, makeCertificate } from './certificate.ts'
import { keepArchive, withArchive, withArchiveOrWriting } from './class-archive.ts'
import { classPath, type KafkaVersion } from './jars.ts'
import { startProxy } from './proxy.ts'
import { testBrokerProperties } from './test-properties.ts'

/** The user of the listeners with passwords, for every mechanism. */
export const kafkaUser = { username: 'pledgeview', password: 'correct horse' }

export type KafkaBroker = Awaited<ReturnType<typeof startKafka>>

type Ports = Readonly<Record<'plain' | 'proxied' | 'proxy' | 'sasl' | 'tls' | 'controller', number>>

const java = [
  '-Xms128m',
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Djava.awt.headless=true',
]

/**
 * Starts a broker whose jars `kafkaRequirement` has downloaded. Resolves when it answers. `overrides` are broker
 * properties, and `port` is that of its plain address (default: a free one). Rejects with the end of its log if it does not start.
 */
export async function startKafka(
  version: KafkaVersion,
  overrides: Readonly<Record<string, string>> = {},
  port?: number,
) {
  const directory = mkdtempSync(join(tmpdir(), 'kafka-'))
  const certificate = await makeCertificate(directory)
  const properties = join(directory, 'server.properties')
  const proxied = await freePort()
  // Before the broker, which tells its clients the proxy's port.
  const proxy = await startProxy({ targetPort: proxied })
  const ports: Ports = {
    proxied,
    proxy: proxy.port,
    plain: port ?? (await freePort()),
    sasl: await freePort(),
    tls: await freePort(),
    controller: await freePort(),
  }
  writeFileSync(
    properties,
    propertiesText({ ...brokerProperties(directory, ports, certificate), ...overrides }),
  )
  let broker: ChildProcess
  try {
    await format(version, directory, properties)
    broker = await launch(version, directory, properties, ports.plain)
  } catch (cause) {
    await proxy.close()
    throw cause
  }
  return {
    version,
    /** host:port, without credentials. */
    address: loopback(ports.plain),
    /** The same through a proxy that tests can hold or cut. */
    proxied: { address: loopback(ports.proxy), proxy },
    /** SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) without TLS. */
    saslAddress: loopback(ports.sasl),
    /** SASL over TLS, under a certificate that `certificate` verifies. */
    tlsAddress: loopback(ports.tls),
    certificate,
    /** The folder with one folder per partition. */
    dataDirectory: dataDirectoryOf(directory),
    /** The process that runs now. */
    child: () => broker,
    /** Ends the process, SIGKILL by default, and keeps its data and its ports. */
    halt: (signal?: NodeJS.Signals) => endProgram(broker, signal),
    /** Starts it again after `halt`; resolves when it answers. */
    async resume(): Promise<void> {
      broker = await launch(version, directory, properties, ports.plain)
    },
    /** Ends it and removes its data. */
    async stop(): Promise<void> {
      await proxy.close()
      await endProgram(broker, 'SIGTERM')
      keepArchive(version, directory, broker.signalCode !== null)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

function brokerProperties(
  directory: string,
  ports: Ports,
  { keyStore }: Certificate,
): Record<string, string> {
  const plainLogin = 'org.apache.kafka.common.security.plain.PlainLoginModule'
  const scramLogin = 'org.apache.kafka.common.security.scram.ScramLoginModule'
  const perMechanism = ['sasl', 'tls'].flatMap(listener => [
    [
      `listener.name.${listener}.plain.sasl.jaas.config`,
      `${plainLogin} required user_${kafkaUser.username}="${kafkaUser.password}";`,
    ],
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`, `${scramLogin} required;`],
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`, `${scramLogin} required;`],
  ])
  return {
    ...testBrokerProperties,
    'controller.quorum.voters': `1@${loopback(ports.controller)}`,
    'inter.broker.listener.name': 'PLAIN',
    'listener.security.protocol.map':
      'CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL',
    listeners: [
      `CONTROLLER://${loopback(ports.controller)}`,
      `PLAIN://${loopback(ports.plain)}`,
      `PROXIED://${loopback(ports.proxied)}`,
      `SASL://${loopback(ports.sasl)}`,
      `TLS://${loopback(ports.tls)}`,
    ].join(','),
    'advertised.listeners': [
      `PLAIN://${loopback(ports.plain)}`,
      `PROXIED://${loopback(ports.proxy)}`,
      `SASL://${loopback(ports.sasl)}`,
      `TLS://localhost:${ports.tls}`,
    ].join(','),
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    ...Object.fromEntries(perMechanism),
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': keyStore,
    'log.dirs': dataDirectoryOf(directory),
  }
}

async function format(version: KafkaVersion, directory: string, properties: string): Promise<void> {
  const users = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap(mechanism => [
    '--add-scram',
    `${mechanism}=[name=${kafkaUser.username},password=${kafkaUser.password}]`,
  ])
  const child = spawnJava(version, directory, [
    ...withArchive(version),
    'kafka.tools.StorageTool',
    ...['format', '--cluster-id', clusterId(), '--config', properties, ...users],
  ])
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`Kafka's storage could not be formatted:\n${logTail(directory)}`)
}

/** Each cluster has an id of its own, as Kafka's tool makes them. It must not begin with a hyphen. */
function clusterId(): string {
  return Buffer.concat([Buffer.alloc(1), randomBytes(15)]).toString('base64url')
}

async function launch(
  version: KafkaVersion,
  directory: string,
  properties: string,
  port: number,
): Promise<ChildProcess> {
  const child = spawnJava(version, directory, [
    ...withArchiveOrWriting(version, directory),
    'kafka.Kafka',
    properties,
  ])
  killAtExit(child)
  await untilAnswers(
    child,
    `Kafka ${version}`,
    () => kafkaAnswers(loopback(port)),
    () => logTail(directory),
  )
  return child
}

/** Whether the broker at this address is ready: its port opens a little earlier. */
export async function kafkaAnswers(address: string): Promise<boolean> {
  const { Kafka, logLevel } = loadKafkajs()
  const kafka = new Kafka({
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  })
  const admin = kafka.admin()
  try {
    await admin.connect()
    return (await admin.describeCluster()).brokers.length === 1
  } catch {
    return false
  } finally {
    await admin.disconnect()
  }
}

function spawnJava(version: KafkaVersion, directory: string, args: readonly string[]): ChildProcess {
  const log = openSync(join(directory, 'output.log'), 'a')
  try {
    return spawn('java', [...java, '-cp', classPath(version), ...args], { stdio: ['ignore', log, log] })
  } finally {
    closeSync(log)
  }
}

function logTail(directory: string): string {
  return readFileSync(join(directory, 'output.log'), 'utf8').split('\n').slice(-40).join('\n')
}

function dataDirectoryOf(directory: string): string {
  return join(directory, 'data')
}

function propertiesText(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

function loopback(port: number): string {
  return `127.0.0.1:${port}`
}
