/** What `npm run test:compose` needs on the machine. The run fails if anything is missing, because it was asked for by name. */

import { run } from '../support/runner/programs.ts'

type Command = readonly [program: string, ...args: string[]]

/** The plugin, or the older program. */
const candidates: readonly Command[] = [['docker', 'compose'], ['docker-compose']]

/** The command of the installed Compose. Throws a list of everything that is missing, and how to get it. */
export async function prerequisites(): Promise<{ compose: Command }> {
  const missing: string[] = []
  if (!(await runs('docker', 'version')))
    missing.push('a Docker engine that answers (Debian: apt-get install docker.io)')
  const compose = await installedCompose()
  if (!compose) missing.push('docker compose, the plugin, or docker-compose')
  if (compose && missing.length === 0) return { compose }
  throw new Error(
    `npm run test:compose needs what is not here:\n${missing.map(one => `  - ${one}\n`).join('')}`,
  )
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
