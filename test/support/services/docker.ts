/**
 * Services from images, through testcontainers. Nothing is loaded or said where no Docker engine answers.
 *
 * testcontainers' own helper, Ryuk, removes what a run that was broken off has left; where its image cannot be had,
 * TESTCONTAINERS_RYUK_DISABLED=true does without it.
 */
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ContainerRuntimeClient, GenericContainer, StartedTestContainer } from 'testcontainers'
import { standInLabel } from '../containers/images.ts'
import type { Requirement } from '../requirements.ts'
import type { ServiceSource } from './test-service.ts'

/** How a service is made of a container. */
export interface ContainerRecipe<S> {
  image: string
  /** What the container is given, before it starts; the host is where its ports will be reached. */
  configure(container: GenericContainer, host: string): Promise<GenericContainer>
  /** What tests get of it. Closing it need not stop the container. */
  open(container: StartedTestContainer): Promise<S>
}

const pingMsMax = 500
const registryMsMax = 1_500
const startMsMax = 120_000
const stopMsMax = 10_000
const registryUrl = 'https://registry-1.docker.io/v2/'

/** The service from a container of its own for every opening. */
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
  const { host } = (await getContainerRuntimeClient()).info.containerRuntime
  const configured = await configure(new GenericContainer(image), host)
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

/** Whether the image, and what testcontainers needs beside it, is there or has been pulled now. */
async function imageRequirement(image: string): Promise<Requirement> {
  if (!(await engineAnswers())) return missing('no Docker engine answers')
  const { getContainerRuntimeClient } = await import('testcontainers')
  try {
    const client = await getContainerRuntimeClient()
    const helper = await reaperImage()
    if (helper !== undefined && (await present(client, helper)) === undefined) {
      return missing(`Docker has no ${helper}, and TESTCONTAINERS_RYUK_DISABLED is not true`)
    }
    const labels = await present(client, image)
    if (labels === undefined) return missing(`Docker has no ${image} and cannot pull it`)
    const standIn = labels[standInLabel]
    const what = standIn === undefined ? image : `a stand-in for ${image} (${standIn})`
    return { isMet: true, reason: '', source: `in Docker, ${what}` }
  } catch (cause) {
    return missing(`Docker: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** The labels of an image that is there or could be pulled. */
async function present(
  client: ContainerRuntimeClient,
  image: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const { ImageName } = await import('testcontainers')
  const name = ImageName.fromString(image)
  if (!(await client.image.exists(name))) {
    // An engine that cannot reach its registry may take minutes to say so.
    if (!(await registryAnswers())) return undefined
    try {
      await client.image.pull(name)
    } catch {
      return undefined
    }
  }
  return (await client.image.inspect(name)).Config.Labels ?? {}
}

async function reaperImage(): Promise<string | undefined> {
  if (process.env.TESTCONTAINERS_RYUK_DISABLED === 'true') return undefined
  const { getReaperImage } = await import('testcontainers/build/reaper/reaper.js')
  return getReaperImage()
}

async function registryAnswers(): Promise<boolean> {
  const signal = AbortSignal.timeout(registryMsMax)
  const answer = await fetch(registryUrl, { signal }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer !== undefined
}

/** Asks the engine's socket; loading testcontainers to learn that there is none would take a second. */
async function engineAnswers(): Promise<boolean> {
  const given = process.env.DOCKER_HOST
  // Another machine's engine: testcontainers knows the ways there.
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
