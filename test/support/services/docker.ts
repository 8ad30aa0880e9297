/**
 * Services from images, through testcontainers. Nothing is loaded or printed if no Docker engine answers.
 *
 * testcontainers' own helper, Ryuk, removes what an interrupted run has left. If its image is not available,
 * TESTCONTAINERS_RYUK_DISABLED=true runs without it.
 */
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ContainerRuntimeClient, GenericContainer, StartedTestContainer } from 'testcontainers'
import type { Requirement } from '../runner/requirements.ts'
import type { Closable, ServiceSource } from './test-service.ts'

/** How to make a service from a container. */
interface ContainerRecipe<S> {
  image: string
  /** The container's settings before it starts. The host is the one at which its ports will be reached. */
  configure(container: GenericContainer, host: string): Promise<GenericContainer>
  /** The service for tests. Closing it need not stop the container. */
  open(container: StartedTestContainer): Promise<S>
}

const registryMsMax = 1_500
const startMsMax = 120_000
const stopMsMax = 10_000

/** The image of a repository with its tag, as the compose file has it. */
export function imageOf(repository: string): string {
  const compose = readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8')
  const image = new RegExp(`^ +image: (${repository}:\\S+)$`, 'm').exec(compose)?.[1]
  if (image === undefined) throw new Error(`docker-compose.yml names no image of ${repository}`)
  return image
}

/** The service, from a new container each time it is opened. */
export function inContainer<S extends object>(recipe: ContainerRecipe<S>): ServiceSource<S & Closable> {
  return { requirement: () => imageRequirement(recipe.image), open: () => start(recipe) }
}

async function start<S extends object>({ image, configure, open }: ContainerRecipe<S>) {
  const { GenericContainer, getContainerRuntimeClient } = await import('testcontainers')
  const { host } = (await getContainerRuntimeClient()).info.containerRuntime
  const configured = await configure(new GenericContainer(image), host)
  const container = await configured.withStartupTimeout(startMsMax).start()
  const stop = () => container.stop({ timeout: stopMsMax })
  try {
    const service: S & Closable = await open(container)
    return {
      ...service,
      async close() {
        await service.close?.()
        await stop()
      },
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

/** Whether the image is present or was pulled now. */
async function imageRequirement(image: string): Promise<Requirement> {
  if (!mayHaveEngine()) return missing('there is no Docker engine')
  const { getContainerRuntimeClient } = await import('testcontainers')
  try {
    const client = await getContainerRuntimeClient()
    if (!(await hasImage(client, image))) return missing(`Docker has no ${image} and cannot pull it`)
    return { isMet: true, reason: '', source: `in Docker, ${image}` }
  } catch (cause) {
    return missing(`Docker: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

async function hasImage(client: ContainerRuntimeClient, image: string): Promise<boolean> {
  const { ImageName } = await import('testcontainers')
  const name = ImageName.fromString(image)
  if (await client.image.exists(name)) return true
  // An engine that cannot reach its registry may take minutes to report that.
  if (!(await registryAnswers())) return false
  return client.image.pull(name).then(
    () => true,
    () => false,
  )
}

/** Whether Docker's public registry can be reached from here. */
function registryAnswers(): Promise<boolean> {
  const asked = { method: 'HEAD', signal: AbortSignal.timeout(registryMsMax) }
  return fetch('https://registry-1.docker.io/v2/', asked).then(
    () => true,
    () => false,
  )
}

/** Whether an engine may answer. Loading testcontainers only to find that there is none would take a second. */
function mayHaveEngine(): boolean {
  const given = process.env.DOCKER_HOST
  // An engine on another machine: testcontainers knows how to reach it.
  if (given !== undefined && !given.startsWith('unix://')) return true
  const runtime = process.env.XDG_RUNTIME_DIR
  const sockets = given
    ? [given.slice('unix://'.length)]
    : [
        '/var/run/docker.sock',
        ...(runtime ? [join(runtime, 'docker.sock')] : []),
        join(homedir(), '.docker/run/docker.sock'),
      ]
  return sockets.some(socket => existsSync(socket))
}

function missing(reason: string): Requirement {
  return { isMet: false, reason }
}
