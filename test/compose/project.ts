/** A project of the compose file as it is, under a name, with ports and secrets of its own. */
import { randomBytes } from 'node:crypto'
import { type RunResult, run } from '../support/containers/docker.ts'
import { freePort } from '../support/redis.ts'
import type { Requirement } from '../support/requirements.ts'

export interface ComposeProject {
  /** `http://127.0.0.1:port/api/v1` */
  apiUrl: string
  opsUrl: string
  /** Runs compose with these arguments; without `secrets` they are missing. An exit code is for the caller. */
  compose(args: readonly string[], options?: { secrets?: boolean; stdin?: string }): Promise<RunResult>
  /** The same, and throws with what it said where it fails; resolves with its stdout. */
  mustCompose(args: readonly string[], stdin?: string): Promise<string>
  /** The ids of a service's containers, ended ones too. */
  containersOf(service: string): Promise<string[]>
}

const root = new URL('../..', import.meta.url).pathname
const composeMsMax = 300_000
const candidates: readonly (readonly [program: string, ...args: string[]])[] = [
  ['docker', 'compose'],
  ['docker-compose'],
]

/** Compose as it is installed: the plugin, or the older program. */
export async function installedCompose(): Promise<Requirement & { command: readonly string[] }> {
  for (const [program, ...args] of candidates) {
    const { code } = await run(program, [...args, 'version']).catch(() => ({ code: -1 }))
    if (code === 0) return { isMet: true, reason: '', command: [program, ...args] }
  }
  return { isMet: false, reason: 'neither docker compose nor docker-compose is installed', command: [] }
}

/** Nothing is started yet. */
export async function composeProject(command: readonly string[]): Promise<ComposeProject> {
  const [program = '', ...first] = command
  const name = `pledgeview-test-${randomBytes(4).toString('hex')}`
  const ports = { api: await freePort(), ops: await freePort() }
  const environment = {
    COMPOSE_PROJECT_NAME: name,
    HOST_PORT_API: String(ports.api),
    HOST_PORT_OPS: String(ports.ops),
    HOST_PORT_KAFKA: String(await freePort()),
    HOST_PORT_CLICKHOUSE: String(await freePort()),
    HOST_PORT_SCHEMA_REGISTRY: String(await freePort()),
  }
  const secrets = Object.fromEntries(
    secretNames.map(secretName => [secretName, randomBytes(32).toString('hex')]),
  )
  // Empty is missing, also where a person's .env has them.
  const noSecrets = Object.fromEntries(secretNames.map(secretName => [secretName, '']))

  const project: ComposeProject = {
    apiUrl: `http://127.0.0.1:${ports.api}/api/v1`,
    opsUrl: `http://127.0.0.1:${ports.ops}`,
    compose: (args, options = {}) =>
      run(program, [...first, ...args], {
        cwd: root,
        msMax: composeMsMax,
        environment: { ...environment, ...(options.secrets === false ? noSecrets : secrets) },
        ...(options.stdin !== undefined && { stdin: options.stdin }),
      }),
    async mustCompose(args, stdin) {
      const done = await project.compose(args, stdin === undefined ? {} : { stdin })
      if (done.code === 0) return done.stdout
      const said = `${done.stdout}\n${done.stderr}`.trim().slice(-4_000)
      throw new Error(`compose ${args.join(' ')} ended with ${done.code}:\n${said}`)
    },
    async containersOf(service) {
      const labels = [`com.docker.compose.project=${name}`, `com.docker.compose.service=${service}`]
      const filters = labels.flatMap(label => ['--filter', `label=${label}`])
      const { stdout } = await run('docker', ['ps', '--all', '--quiet', '--no-trunc', ...filters])
      return stdout.split('\n').filter(id => id !== '')
    },
  }
  return project
}

const secretNames = [
  'PLEDGEVIEW_KEY_PEPPER',
  'PLEDGEVIEW_BACKER_KEY',
  'PLEDGEVIEW_CLICKHOUSE_PASSWORD',
] as const
