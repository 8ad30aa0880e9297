/**
 * The images that the compose file, the Dockerfile and the tests name, and the source of each: the official image if the engine
 * has it or can pull it, otherwise a stand-in that stand-ins.ts builds. A stand-in has a separate name, so that only these
 * tests run it.
 */
import { readFileSync } from 'node:fs'
import type { KafkaVersion } from '../kafka/jars.ts'
import { run } from '../runner/programs.ts'
import { docker } from './docker.ts'

/** The label of every stand-in; its value says what it is. */
export const standInLabel = 'pledgeview.stand-in'

/** The name of the stand-in for an image. */
export const standInOf = (image: string): string => `pledgeview-stand-in/${image.replaceAll('/', '-')}`

/** The in-memory variant of the registry in the compose file, with the same version. */
export const memoryRegistryImage = (): string =>
  imageOf('apicurio/apicurio-registry-kafkasql').replace('-kafkasql:', '-mem:')

/** The image in a version that the compose file does not have. */
export const kafkaImage = (version: KafkaVersion): string => `apache/kafka:${version}`

const sources = ['../../../docker-compose.yml', '../../../deploy/Dockerfile']
const pullMsMax = 600_000
const registryMsMax = 1_500
const registryUrl = 'https://registry-1.docker.io/v2/'

/** The image of a repository with its tag, as the compose file or the Dockerfile has it. */
export function imageOf(repository: string): string {
  for (const source of sources) {
    const text = readFileSync(new URL(source, import.meta.url), 'utf8')
    for (const [, image = ''] of text.matchAll(/^(?:\s+image: |FROM |ARG \w+_IMAGE=)(\S+)$/gm)) {
      if (image.startsWith(`${repository}:`)) return image
    }
  }
  throw new Error(`neither docker-compose.yml nor deploy/Dockerfile names an image of ${repository}`)
}

/** Whether the engine holds an image of this name, official or not. */
export async function isPresent(image: string): Promise<boolean> {
  return (await labelOf(image)) !== undefined
}

/** Whether the official image is available now: it was present, or it could be pulled. */
export async function haveOfficial(image: string): Promise<boolean> {
  if ((await labelOf(image)) === '') return true
  // An engine that cannot reach its registry may take minutes to report that.
  if (!(await registryAnswers())) return false
  try {
    await docker(['pull', '--quiet', image], { msMax: pullMsMax })
    return true
  } catch {
    return false
  }
}

/** Whether Docker's public registry can be reached from here. */
export async function registryAnswers(): Promise<boolean> {
  const signal = AbortSignal.timeout(registryMsMax)
  const answer = await fetch(registryUrl, { signal }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer !== undefined
}

/** The label of a stand-in; empty for another image, `undefined` for none. */
async function labelOf(image: string): Promise<string | undefined> {
  const format = `{{index .Config.Labels "${standInLabel}"}}`
  const { code, stdout } = await run('docker', ['image', 'inspect', '--format', format, image])
  return code === 0 ? stdout.trim() : undefined
}
