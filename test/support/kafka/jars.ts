/**
 * Kafka's jars, from Maven Central through pom.xml, kept in node_modules/.cache. Tests run a real broker with them.
 *
 * Their availability is a requirement like any other: without Java, Maven or the network, suites are skipped with the reason.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { keepFolder } from '../runner/keep-folder.ts'
import type { Requirement } from '../runner/requirements.ts'

/** The brokers that the tests run on: the last version of the ZooKeeper line, and the newest. */
export const newestKafka = '4.4.0'
export const kafkaVersions = ['3.9.2', newestKafka] as const
export type KafkaVersion = (typeof kafkaVersions)[number]

const cacheFolder = new URL('../../../node_modules/.cache/pledgeview/', import.meta.url).pathname
const fetchMsMax = 240_000

/** What a pom names, with the versions that it leaves open. */
export interface Jars {
  /** Of its folder in the cache. */
  name: string
  pom: string
  versions: Readonly<Record<string, string>>
}

const brokerJars = (version: KafkaVersion): Jars => ({
  name: `kafka-${version}`,
  pom: new URL('pom.xml', import.meta.url).pathname,
  versions: { 'kafka.version': version },
})

/** Downloads the jars if they are missing. Never rejects: the requirement's reason says what is missing. */
export async function kafkaRequirement(version: KafkaVersion): Promise<Requirement> {
  return jarsRequirement(brokerJars(version))
}

/** The class path of a version that `kafkaRequirement` has downloaded. */
export function classPath(version: KafkaVersion): string {
  return `${jarFolder(version)}/*`
}

/** The same for the jars of any pom. */
export async function jarsRequirement(jars: Jars): Promise<Requirement> {
  try {
    await run('java', ['-version'])
    await run('openssl', ['version'])
    await fetchJars(jars)
    return { isMet: true, reason: '' }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { isMet: false, reason: `${jars.name} cannot be run: ${reason}` }
  }
}

async function fetchJars(jars: Jars): Promise<void> {
  const { pom, versions } = jars
  const folder = folderOf(jars)
  if (existsSync(folder)) return
  mkdirSync(cacheFolder, { recursive: true })
  // Written to a separate folder and renamed, so that an incomplete or parallel download never counts as complete.
  const part = mkdtempSync(join(cacheFolder, 'part-'))
  try {
    await run('mvn', [
      ...['--batch-mode', '--quiet', '--file', pom, 'dependency:copy-dependencies'],
      ...Object.entries(versions).map(([property, version]) => `-D${property}=${version}`),
      ...['-DincludeScope=runtime', `-DoutputDirectory=${part}`],
    ])
    keepFolder(part, folder)
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}

/** The folder with the jars of a version that `kafkaRequirement` has downloaded. */
export function jarFolder(version: KafkaVersion): string {
  return folderOf(brokerJars(version))
}

export function folderOf({ name }: Jars): string {
  return join(cacheFolder, name)
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: fetchMsMax })
  const exit = once(child, 'exit').catch(cause => {
    throw new Error(`${program} cannot be started`, { cause })
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  if (code === 0) return
  const firstError = `${stdout}\n${stderr}`.split('\n').find(line => line.trim() !== '') ?? 'no output'
  throw new Error(`${program} ended with ${code}: ${firstError}`)
}
