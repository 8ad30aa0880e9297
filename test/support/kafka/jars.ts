/**
 * Kafka's jars, from Maven Central through pom.xml, kept in node_modules/.cache. Tests run a real broker with them.
 *
 * Their availability is a requirement like any other: without Java, Maven or the network, suites are skipped with the reason.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keepFolder } from '../runner/keep-folder.ts'
import { cacheFolder, fetched, outputOf, requirementOf } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

/** The brokers that the tests run on: the last version of the ZooKeeper line, and the newest. */
export const newestKafka = '4.4.0'
export const kafkaVersions = ['3.9.2', newestKafka] as const
export type KafkaVersion = (typeof kafkaVersions)[number]

/** What a pom names, with the versions that it leaves open. */
export interface Jars {
  /** Of its folder in the cache. */
  name: string
  pom: string
  versions: Readonly<Record<string, string>>
}

const brokerJars = (version: KafkaVersion): Jars => ({
  name: `kafka-${version}`,
  pom: fileURLToPath(new URL('pom.xml', import.meta.url)),
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
export function jarsRequirement(jars: Jars): Promise<Requirement> {
  return requirementOf(jars.name, async () => {
    await outputOf('java', ['-version'])
    await outputOf('openssl', ['version'])
    await keepFolder(folderOf(jars), part =>
      fetched('mvn', [
        ...['--batch-mode', '--quiet', '--file', jars.pom, 'dependency:copy-dependencies'],
        ...Object.entries(jars.versions).map(([property, version]) => `-D${property}=${version}`),
        ...['-DincludeScope=runtime', `-DoutputDirectory=${part}`],
      ]),
    )
  })
}

/** The folder with the jars of a version that `kafkaRequirement` has downloaded. */
export function jarFolder(version: KafkaVersion): string {
  return folderOf(brokerJars(version))
}

export function folderOf({ name }: Jars): string {
  return join(cacheFolder, name)
}
