/**
 * Makes images ready: the official one where it is there or can be pulled, else its stand-in. An official image is never
 * replaced. `node test/support/containers/prepare.ts` does so for those that the suites take through testcontainers.
 */
import { kafkaVersions } from '../kafka/jars.ts'
import { haveOfficial, imageOf, kafkaImage, memoryRegistryImage } from './images.ts'
import { buildStandIn } from './stand-ins.ts'

/** What docker-compose.yml and the Dockerfile stand on, in this order: the stand-in for ClickHouse runs on Node. */
export const composeImages = (): string[] =>
  [
    'node',
    'apache/kafka',
    'clickhouse/clickhouse-server',
    'redis',
    'apicurio/apicurio-registry-kafkasql',
  ].map(imageOf)

/** Tells of each image, as it is, where it comes from. Rejects where one cannot be had. */
export async function prepareImages(images: readonly string[], say: (line: string) => void): Promise<void> {
  for (const image of images) {
    if (await haveOfficial(image)) {
      say(`${image}: official`)
      continue
    }
    say(`${image}: stand-in (${await buildStandIn(image)})`)
  }
}

if (import.meta.main) {
  const ofSuites = [...kafkaVersions.map(kafkaImage), memoryRegistryImage()]
  await prepareImages([...new Set([...composeImages(), ...ofSuites])], line => console.log(line))
}
