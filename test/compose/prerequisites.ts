/** What `npm run test:compose` needs on the machine. The run fails if anything is missing, because it was asked for by name. */

import { isPresent, registryAnswers } from '../support/containers/images.ts'
import { composeImages } from '../support/containers/prepare.ts'
import { base } from '../support/containers/stand-ins.ts'
import { run } from '../support/runner/programs.ts'

type Command = readonly [program: string, ...args: string[]]

/** The plugin, or the older program. */
const candidates: readonly Command[] = [['docker', 'compose'], ['docker-compose']]

/** The command of the installed Compose. Throws a list of everything that is missing, and how to get it. */
export async function prerequisites(): Promise<{ compose: Command }> {
  const missing: string[] = []
  const hasEngine = await runs('docker', 'version')
  if (!hasEngine) missing.push('a Docker engine that answers (Debian: apt-get install docker.io)')
  const compose = await installedCompose()
  if (!compose) missing.push('docker compose, the plugin, or docker-compose')
  if (!(await hasImages(hasEngine)) && !(await runs('debootstrap', '--version'))) {
    missing.push('debootstrap (Debian: apt-get install debootstrap), because Docker Hub does not answer')
  }
  if (compose && missing.length === 0) return { compose }
  throw new Error(
    `npm run test:compose needs what is not here:\n${missing.map(one => `  - ${one}\n`).join('')}`,
  )
}

/** Whether the official images, or the base images of the stand-ins, are available without debootstrap. */
async function hasImages(hasEngine: boolean): Promise<boolean> {
  if (await registryAnswers()) return true
  if (!hasEngine) return false
  if (await isPresent(base)) return true
  const present = await Promise.all(composeImages().map(isPresent))
  return present.every(Boolean)
}

/** `undefined`: not installed. */
export async function installedCompose(): Promise<Command | undefined> {
  for (const candidate of candidates) if (await runs(...candidate, 'version')) return candidate
  return undefined
}

async function runs(program: string, ...args: string[]): Promise<boolean> {
  const { code } = await run(program, args).catch(() => ({ code: -1 }))
  return code === 0
}
