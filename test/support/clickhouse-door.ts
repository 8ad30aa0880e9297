/** Starts the ClickHouse door (clickhouse-door-main.ts): a stand-in for a ClickHouse server, on a free port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ServerSettings } from '../../services/shared/tables/clickhouse-server.ts'

export interface DoorOptions {
  /** Data directory that stays; without one, a fresh one that `stop` removes. */
  directory?: string
  /** Default: a free one. */
  port?: number
  user?: string
  password?: string
  /** A ClickHouse configuration, for users and clusters. */
  configFile?: string
}

export interface ClickHouseDoor {
  /** `http://127.0.0.1:port` */
  url: string
  user: string
  password: string
  directory: string
  child: ChildProcess
  /** Lets the statements that run end, and then removes the data directory if it made it. */
  stop(): Promise<void>
  /** kill -9; the data directory stays until `stop`. */
  kill(): Promise<void>
}

/** What it takes to open the tables behind a door, or behind anything else at a URL. */
export function settingsFor(door: Pick<ClickHouseDoor, 'url' | 'user' | 'password'>): ServerSettings {
  return {
    url: door.url,
    user: door.user,
    password: door.password,
    compression: false,
    silenceMsMax: 10_000,
    connectionsMax: 12,
    idleConnectionMsMax: 2_500,
  }
}

const main = new URL('clickhouse-door-main.ts', import.meta.url).pathname
const stopMsMax = 15_000

/** Resolves once the door takes requests. Rejects where its process ends before. */
export async function startClickHouseDoor(options: DoorOptions = {}): Promise<ClickHouseDoor> {
  const { port = 0, user = 'default', password = '', configFile } = options
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'pledgeview-clickhouse-')))
  const args = ['--directory', directory, '--port', String(port), '--exit-with-stdin']
  if (configFile !== undefined) args.push('--config-file', configFile)
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password },
    // It ends when its stdin does, so it does not outlive a test that is killed.
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [first] = await Promise.race([
    once(lines, 'line'),
    exited.then(([code]) =>
      Promise.reject(new Error(`the ClickHouse door ended with ${code} before it opened`)),
    ),
  ])
  const { url } = JSON.parse(String(first)) as { url: string }
  return {
    url,
    user,
    password,
    directory,
    child,
    async stop() {
      const deadline = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
      child.kill('SIGTERM')
      await exited
      clearTimeout(deadline)
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true })
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
