/**
 * The images that the compose file and the Dockerfile name, and where each of them comes from: the official one where it is
 * there or can be pulled, else a stand-in that stand-ins.ts builds and tags like it. An official image is never replaced.
 */
import { readFileSync } from 'node:fs'
import { docker, run } from './docker.ts'

/** A repository whose image has a stand-in. */
export type Repository =
  | 'node'
  | 'apache/kafka'
  | 'clickhouse/clickhouse-server'
  | 'redis'
  | 'apicurio/apicurio-registry-kafkasql'

/** `stand-in` is what the stand-in's label says it is. */
export type ImageOrigin = { kind: 'official' } | { kind: 'stand-in'; is: string }

/** The label by which a stand-in is told from an official image; its value says what it is. */
export const standInLabel = 'pledgeview.stand-in'

const sources = ['../../../docker-compose.yml', '../../../deploy/Dockerfile']
const pullMsMax = 600_000

/** The image of a repository with its tag, as the compose file or the Dockerfile has it. */
export function imageOf(repository: Repository): string {
  for (const source of sources) {
    const text = readFileSync(new URL(source, import.meta.url), 'utf8')
    for (const [, image = ''] of text.matchAll(/^(?:\s+image:|FROM) (\S+)$/gm)) {
      if (image.startsWith(`${repository}:`)) return image
    }
  }
  throw new Error(`neither docker-compose.yml nor deploy/Dockerfile names an image of ${repository}`)
}

/** What the engine holds under this name, if anything. */
export async function presentImage(image: string): Promise<ImageOrigin | undefined> {
  const format = `{{index .Config.Labels "${standInLabel}"}}`
  const { code, stdout } = await run('docker', ['image', 'inspect', '--format', format, image])
  if (code !== 0) return undefined
  const label = stdout.trim()
  return label === '' ? { kind: 'official' } : { kind: 'stand-in', is: label }
}

/** Whether the official image is there now: it was, or it could be pulled. */
export async function haveOfficial(image: string): Promise<boolean> {
  if ((await presentImage(image))?.kind === 'official') return true
  try {
    await docker(['pull', '--quiet', image], { msMax: pullMsMax })
    return true
  } catch {
    return false
  }
}
