/**
 * Prepares images: the official one if the engine has it or can pull it, otherwise its stand-in, under a separate name.
 * `node test/support/containers/prepare.ts` does so for the images that the suites use through testcontainers.
 */
import { kafkaVersions } from '../kafka/jars.ts'
import { run } from '../runner/programs.ts'
import { haveOfficial, imageOf, isPresent, kafkaImage, memoryRegistryImage, standInOf } from './images.ts'
import { base, buildStandIn } from './stand-ins.ts'

/** The images of docker-compose.yml and the Dockerfile, in this order, because ClickHouse's stand-in runs on Node. */
export const composeImages = (): string[] =>
  [
    'node',
    'apache/kafka',
    'clickhouse/clickhouse-server',
    'redis',
    'haproxy',
    'apicurio/apicurio-registry-kafkasql',
  ].map(imageOf)

export interface PreparedImages {
  /** The name under which to run each image: its own, or that of its stand-in. */
  names: ReadonlyMap<string, string>
  /** The images that this call built, the latest first, so that they can be removed in this order. */
  built: readonly string[]
}

/** Reports the source of each image. Rejects if one is not available. */
export async function prepareImages(
  images: readonly string[],
  say: (line: string) => void,
): Promise<PreparedImages> {
  const names = new Map<string, string>()
  const built: string[] = []
  const hadBase = await isPresent(base)
  try {
    for (const image of images) {
      const isOfficial = await haveOfficial(image)
      const name = isOfficial ? image : standInOf(image)
      names.set(image, name)
      if (isOfficial) {
        say(`${image}: official`)
        continue
      }
      const wasThere = await isPresent(name)
      const what = await buildStandIn(image)
      if (built.length === 0 && !hadBase) built.push(base)
      if (!wasThere) built.unshift(name)
      say(`${image}: stand-in ${name} (${what})`)
    }
  } catch (cause) {
    await removeImages(built)
    throw cause
  }
  return { names, built }
}

/** Removes images, in this order. Ignores images that are in use or already removed. */
export async function removeImages(images: readonly string[]): Promise<void> {
  for (const image of images) await run('docker', ['image', 'rm', image])
}

if (import.meta.main) {
  const ofSuites = [...kafkaVersions.map(kafkaImage), memoryRegistryImage()]
  const images = [...new Set([...composeImages(), ...ofSuites])]
  const { built } = await prepareImages(images, line => console.log(line))
  if (built.length > 0) console.log(`When you need them no more: docker image rm ${built.join(' ')}`)
}
