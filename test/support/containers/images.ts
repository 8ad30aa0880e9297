/**
 * The images that the compose file, the Dockerfile and the tests name, and where each of them comes from: the official one
 * where it is there or can be pulled, else a stand-in that stand-ins.ts builds and tags like it.
 */
import { readFileSync } from 'node:fs'
import type { KafkaVersion } from '../kafka/jars.ts'
import { docker, run } from './docker.ts'

/** The label by which a stand-in is told from an official image; its value says what it is. */
export const standInLabel = 'pledgeview.stand-in'

/** The registry that keeps its schemas in memory, of the line of the one that the compose file has. */
export const memoryRegistryImage = (): string =>
  imageOf('apicurio/apicurio-registry-kafkasql').replace('-kafkasql:', '-mem:')

/** The image of a version that the compose file does not have. */
export const kafkaImage = (version: KafkaVersion): string => `apache/kafka:${version}`

const sources = ['../../../docker-compose.yml', '../../../deploy/Dockerfile']
const pullMsMax = 600_000

/** The image of a repository with its tag, as the compose file or the Dockerfile has it. */
export function imageOf(repository: string): string {
  for (const source of sources) {
    const text = readFileSync(new URL(source, import.meta.url), 'utf8')
    for (const [, image = ''] of text.matchAll(/^(?:\s+image:|FROM) (\S+)$/gm)) {
      if (image.startsWith(`${repository}:`)) return image
    }
  }
  throw new Error(`neither docker-compose.yml nor deploy/Dockerfile names an image of ${repository}`)
}

/** Whether the engine holds an image of this name, official or not. */
export async function isPresent(image: string): Promise<boolean> {
  return (await labelOf(image)) !== undefined
}

/** Whether the official image is there now: it was, or it could be pulled. */
export async function haveOfficial(image: string): Promise<boolean> {
  if ((await labelOf(image)) === '') return true
  try {
    await docker(['pull', '--quiet', image], { msMax: pullMsMax })
    return true
  } catch {
    return false
  }
}

/** The label of a stand-in; empty for another image, `undefined` for none. */
async function labelOf(image: string): Promise<string | undefined> {
  const format = `{{index .Config.Labels "${standInLabel}"}}`
  const { code, stdout } = await run('docker', ['image', 'inspect', '--format', format, image])
  return code === 0 ? stdout.trim() : undefined
}
