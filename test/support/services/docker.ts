/**
 * Services from images, through testcontainers. Nothing is loaded or printed if no Docker engine answers.
 *
 * testcontainers' own helper, Ryuk, removes what an interrupted run has left. If its image is not available,
 * TESTCONTAINERS_RYUK_DISABLED=true runs without it.
 */
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ContainerRuntimeClient, GenericContainer, StartedTestContainer } from 'testcontainers'
import { registryAnswers, standInLabel, standInOf } from '../containers/images.ts'
import type { Requirement } from '../runner/requirements.ts'
import type { ServiceSource } from './test-service.ts'

/** How to make a service from a container. */
export interface ContainerRecipe<S> {
  image: string
  /** The container's settings before it starts. The host is the one at which its ports will be reached. */
  configure(container: GenericContainer, host: string): Promise<GenericContainer>
  /** The service for tests. Closing it need not stop the container. */
  open(container: StartedTestContainer): Promise<S>
}

const pingMsMax = 500
const startMsMax = 120_000
const stopMsMax = 10_000

/** The service, from a new container each time it is opened. */
export function inContainer<S extends { close(): Promise<void> }>(
  recipe: ContainerRecipe<S>,
): ServiceSource<S> {
  return { requirement: () => imageRequirement(recipe.image), open: () => start(recipe) }
}

async function start<S extends { close(): Promise<void> }>({
  image,
  configure,
  open,
}: ContainerRecipe<S>): Promise<S> {
  const { GenericContainer, getContainerRuntimeClient } = await import('testcontainers')
  const client = await getContainerRuntimeClient()
  const { host } = client.info.containerRuntime
  const found = await findImage(client, image)
  const configured = await configure(new GenericContainer(found?.name ?? image), host)
  const container = await configured.withStartupTimeout(startMsMax).start()
  const stop = () => container.stop({ timeout: stopMsMax })
  try {
    const service = await open(container)
    return {
      ...service,
      async close() {
        await service.close()
        await stop()
      },
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

/** Whether the image, and what testcontainers also needs, is present or was pulled now. */
async function imageRequirement(image: string): Promise<Requirement> {
  if (!(await engineAnswers())) return missing('no Docker engine answers')
  const { getContainerRuntimeClient } = await import('testcontainers')
  try {
    const client = await getContainerRuntimeClient()
    const helper = await reaperImage()
    if (helper !== undefined && (await findImage(client, helper)) === undefined) {
      return missing(`Docker has no ${helper}, and TESTCONTAINERS_RYUK_DISABLED is not true`)
    }
    const found = await findImage(client, image)
    if (found === undefined) return missing(`Docker has no ${image} and cannot pull it`)
    const { standIn } = found
    const what = standIn === undefined ? image : `a stand-in for ${image} (${standIn})`
    return { isMet: true, reason: '', source: `in Docker, ${what}` }
  } catch (cause) {
    return missing(`Docker: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** The official image if present, otherwise its stand-in if it was built, otherwise the official image if it can be pulled. */
async function findImage(
  client: ContainerRuntimeClient,
  image: string,
): Promise<{ name: string; standIn?: string | undefined } | undefined> {
  const { ImageName } = await import('testcontainers')
  const official = ImageName.fromString(image)
  if (await client.image.exists(official)) return { name: image }
  const name = ImageName.fromString(standInOf(image))
  if (await client.image.exists(name)) {
    const { Config } = await client.image.inspect(name)
    return { name: standInOf(image), standIn: Config.Labels?.[standInLabel] }
  }
  // An engine that cannot reach its registry may take minutes to report that.
  if (!(await registryAnswers())) return undefined
  try {
    await client.image.pull(official)
    return { name: image }
  } catch {
    return undefined
  }
}

async function reaperImage(): Promise<string | undefined> {
  if (process.env.TESTCONTAINERS_RYUK_DISABLED === 'true') return undefined
  const { getReaperImage } = await import('testcontainers/build/reaper/reaper.js')
  return getReaperImage()
}

/** Asks the engine's socket. Loading testcontainers only to find that there is no engine would take a second. */
async function engineAnswers(): Promise<boolean> {
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
  const answers = await Promise.all(sockets.filter(socket => existsSync(socket)).map(ping))
  return answers.includes(true)
}

function ping(socketPath: string): Promise<boolean> {
  return new Promise(resolve => {
    const asked = request({ socketPath, path: '/_ping', timeout: pingMsMax }, response => {
      response.resume().on('end', () => resolve(response.statusCode === 200))
    })
    asked.on('timeout', () => asked.destroy()).on('error', () => resolve(false))
    asked.on('close', () => resolve(false))
    asked.end()
  })
}

function missing(reason: string): Requirement {
  return { isMet: false, reason }
}
