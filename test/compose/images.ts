/** The images of the compose file, had in one way or the other, and the program's own, built from its Dockerfile. */
import { haveOfficial, imageOf, type Repository } from '../support/containers/images.ts'
import { buildImage, buildStandIn } from '../support/containers/stand-ins.ts'

const root = new URL('../..', import.meta.url).pathname

// In this order: the stand-in for ClickHouse runs on Node.
const repositories: readonly Repository[] = [
  'node',
  'apache/kafka',
  'clickhouse/clickhouse-server',
  'redis',
  'apicurio/apicurio-registry-kafkasql',
]

/** Makes all of them ready and tells of each, as it is, where it comes from. Rejects where one cannot be had. */
export async function prepareImages(programImage: string, say: (line: string) => void): Promise<void> {
  for (const repository of repositories) {
    const image = imageOf(repository)
    if (await haveOfficial(image)) say(`${image}: official`)
    else {
      const origin = await buildStandIn(repository)
      say(`${image}: stand-in (${origin.kind === 'stand-in' ? origin.is : ''})`)
    }
  }
  await buildImage(programImage, root, ['--file', `${root}deploy/Dockerfile`])
  say(`${programImage}: built from deploy/Dockerfile`)
}
