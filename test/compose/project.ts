/** A project of the compose file, with a separate name, ports, secrets and, if necessary, other images. */
import { randomBytes, randomInt } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../services/runtime/free-port.ts'
import { type RunResult, run } from '../support/runner/programs.ts'

export interface ComposeProject {
  /** `http://127.0.0.1:port/api/v1` */
  apiUrl: string
  portalUrl: string
  opsUrl: string
  /** Runs compose with these arguments; without `secrets` they are missing. The caller checks the exit code. */
  compose(args: readonly string[], options?: { secrets?: boolean; stdin?: string }): Promise<RunResult>
  /** The same, but throws with the output if it fails. Resolves with its stdout. */
  mustCompose(args: readonly string[], stdin?: string): Promise<string>
  /** The ids of a service's containers, including stopped ones. */
  containersOf(service: string): Promise<string[]>
  /** Removes containers, networks and volumes. */
  close(): Promise<void>
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const composeMsMax = 300_000
/** A project whose services run these images instead of those in the compose file. It is not started yet. */
export async function composeProject(
  command: readonly string[],
  images: Readonly<Record<string, string>>,
): Promise<ComposeProject> {
  const [program = '', ...first] = command
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-compose-'))
  const override = join(folder, 'images.json')
  const services = Object.fromEntries(Object.entries(images).map(([service, image]) => [service, { image }]))
  writeFileSync(override, JSON.stringify({ services }))
  const files = ['--file', 'docker-compose.yml', '--file', override]
  const name = `pledgeview-test-${randomBytes(4).toString('hex')}`
  const ports = { api: await freePort(), portal: await freePort(), ops: await freePort() }
  // A network of its own, beside a project that may run on this machine.
  const network = `10.213.${randomInt(8, 256)}`
  const environment = {
    COMPOSE_PROJECT_NAME: name,
    BALANCER_NETWORK: `${network}.0/24`,
    BALANCER_ADDRESS: `${network}.250`,
    HOST_PORT_API: String(ports.api),
    HOST_PORT_OPS: String(ports.ops),
    HOST_PORT_KAFKA: String(await freePort()),
    HOST_PORT_CLICKHOUSE: String(await freePort()),
    HOST_PORT_PORTAL: String(ports.portal),
    HOST_PORT_SCHEMA_REGISTRY: String(await freePort()),
  }
  const secrets = Object.fromEntries(
    secretNames.map(secretName => [secretName, randomBytes(32).toString('hex')]),
  )
  // An empty value counts as missing, even if a developer's .env sets it.
  const noSecrets = Object.fromEntries(secretNames.map(secretName => [secretName, '']))

  const project: ComposeProject = {
    apiUrl: `http://127.0.0.1:${ports.api}/api/v1`,
    portalUrl: `http://localhost:${ports.portal}`,
    opsUrl: `http://127.0.0.1:${ports.ops}`,
    compose: (args, options = {}) =>
      run(program, [...first, ...files, ...args], {
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
    async close() {
      await project.compose(['down', '--volumes', '--timeout', '30'])
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return project
}

const secretNames = [
  'PLEDGEVIEW_PORTAL_KEY',
  'PLEDGEVIEW_KEY_PEPPER',
  'PLEDGEVIEW_BACKER_KEY',
  'PLEDGEVIEW_CLICKHOUSE_PASSWORD',
] as const
