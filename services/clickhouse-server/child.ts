/**
 * One run of the child server: its start, the moment when it answers, and its end. If it ends alone, server.ts restarts it.
 *
 * How it fails: `startChild` rejects with `ServerStartError`. Its message says what an operator can do.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  configurationFile,
  configurationText,
  listenStatements,
  programUser,
  type ServerConfiguration,
  usersFile,
  usersText,
  workingDirectory,
  workloadDirectory,
} from './configuration.ts'
import { exceptionOf, logPath, ServerStartError, startErrorOf } from './start-error.ts'

export type Child = Awaited<ReturnType<typeof startChild>>

const main = fileURLToPath(new URL('main.ts', import.meta.url))
const startMsMax = 60_000
const askMsMax = 2_000
const lookMs = 15
const stderrCharsMax = 8_192
const logBytesMax = 65_536

/** Writes the two files, starts the process, and resolves once it answers. */
export async function startChild(configuration: ServerConfiguration) {
  writeFiles(configuration)
  const cwd = join(configuration.filesDirectory, workingDirectory)
  await using directory = await openWorkingDirectory(cwd)
  const { page } = directory
  const args = [
    join(configuration.filesDirectory, configurationFile),
    // With other servers in a cluster, it has to call them.
    ...(configuration.more ? [] : [new URL(page).port]),
  ]
  const process_ = spawn(process.execPath, [main, ...args], {
    cwd,
    stdio: ['pipe', 'ignore', 'pipe'],
    // Its own session: a Ctrl-C at the terminal reaches only the parent, which then ends the child.
    detached: true,
    // Not an argument: every user of this machine can read those. If another user fetches the page first, the start fails.
    env: { ...environment(), STATEMENTS: listenStatements(configuration, page).join('; ') },
  })
  const stderr = collect(process_)
  const logged = logReader(logPath(configuration))
  // It may end while we write to its stdin. `ended` reports that.
  process_.stdin?.on('error', () => {})
  let isEnded = false
  // Resolves with the reason when it has ended. `close` comes when all of its output has been read.
  // A process that cannot be started has an error and no end.
  const ended: Promise<string> = once(process_, 'close')
    .then(
      // What a process that was killed has said is not the reason.
      ([code, signal]) =>
        (signal !== 'SIGKILL' && stderr()) || (signal === null ? `exit code ${code}` : `signal ${signal}`),
      (error: Error) => error.message,
    )
    .finally(() => {
      isEnded = true
    })

  /** kill -9. It always ends this way: acknowledged rows are on disk, and the start is safe after a crash. */
  async function kill(): Promise<void> {
    process_.kill('SIGKILL')
    await ended
  }

  const deadline = performance.now() + startMsMax
  while (!(listensAlone(process_.pid ?? 0, configuration.httpPort) && (await answers(configuration)))) {
    // The session does not continue after a statement that failed.
    if (exceptionOf(stderr())) await kill()
    if (isEnded) throw startErrorOf({ said: stderr(), logged: logged(), end: await ended }, configuration)
    if (performance.now() > deadline) {
      await kill()
      throw new ServerStartError(
        `ClickHouse did not answer within ${startMsMax / 1000} s; its log is ${logPath(configuration)}`,
      )
    }
    await sleep(lookMs)
  }
  return { pid: process_.pid ?? 0, ended, kill }
}

/** Runs a statement as the program's user. Throws if the server does not answer within `msMax` or refuses it. */
export async function ask(
  { httpPort, programPassword }: ServerConfiguration,
  statement: string,
  msMax = askMsMax,
): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${httpPort}/`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(`${programUser}:${programPassword}`).toString('base64')}`,
    },
    body: statement,
    signal: AbortSignal.timeout(msMax),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text.trim())
  return text
}

/**
 * Whether this process, and no other, listens on the port. While the server is away, another user's program may take the port, and would be
 * sent the password. Where the system does not tell, it is believed.
 */
function listensAlone(pid: number, port: number): boolean {
  const table = attempted(() => readFileSync(listeners, 'utf8'))
  if (!table || !attempted(() => readdirSync('/proc/self/fd'))) return true
  // None, if it has ended.
  const names = attempted(() => readdirSync(`/proc/${pid}/fd`)) ?? []
  // The kernel writes an address in hexadecimal digits, its bytes in the order of the machine.
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = table
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local === address && state === listening)
    .map(fields => `socket:[${fields[inodeAt]}]`)
  const own = new Set(names.map(name => attempted(() => readlinkSync(`/proc/${pid}/fd/${name}`))))
  return sockets.length > 0 && sockets.every(socket => own.has(socket))
}

const listeners = '/proc/net/tcp'
const listening = '0A'
const inodeAt = 9

/** What a call returns; `undefined` if it fails. */
function attempted<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}

/** Whether all ports are open. Then the last statement of the session runs; its user has no name. */
async function answers(configuration: ServerConfiguration): Promise<boolean> {
  const running = "SELECT count() FROM system.processes WHERE user = '' AND query LIKE 'SELECT sleepEachRow%'"
  return ask(configuration, running).then(
    text => text === '1\n',
    () => false,
  )
}

function writeFiles(configuration: ServerConfiguration): void {
  const { filesDirectory, dataDirectory } = configuration
  // This server keeps workloads on disk but does not load them. They are created again at every start (server.ts).
  rmSync(join(filesDirectory, workloadDirectory), { recursive: true, force: true })
  for (const directory of [filesDirectory, dataDirectory]) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    chmodSync(directory, 0o700)
  }
  for (const [name, text] of [
    [configurationFile, configurationText(configuration)],
    [usersFile, usersText(configuration)],
  ] as const) {
    const path = join(filesDirectory, name)
    writeFileSync(path, text, { mode: 0o600 })
    chmodSync(path, 0o600)
  }
}

// The child gets none of the parent's secrets. CHDB_ variables may name another place of the library.
function environment(): NodeJS.ProcessEnv {
  const passed = Object.entries(process.env).filter(([name]) => name === 'PATH' || name.startsWith('CHDB_'))
  // ClickHouse ignores the time zone of the configuration file.
  return { ...Object.fromEntries(passed), TZ: 'UTC' }
}

// What ClickHouse logs is in its log; an exception that ends it has no such head.
const logLine = /^Logging |^\d{4}\.\d\d\.\d\d .* <(?:Error|Warning|Notice|Information|Debug|Trace)> /

/** Keeps the last part of the process's output. */
function collect({ stderr }: ChildProcess): () => string {
  let text = ''
  stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    // The cut falls within a line, which is left out.
    if (text.length > stderrCharsMax) text = text.slice(-stderrCharsMax).replace(/^.*\n/, '')
  })
  return () =>
    text
      .split('\n')
      .filter(line => !logLine.test(line))
      .join(' ')
      .trim()
}

/** Reads what is written to the log from now on. */
function logReader(path: string): () => string {
  const bytesBefore = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return () => {
    // Its size is bounded (configuration.ts).
    const log = attempted(() => readFileSync(path)) ?? Buffer.alloc(0)
    // The log may have been rotated.
    const from = log.length < bytesBefore ? 0 : bytesBefore
    return log.toString('utf8', from, from + logBytesMax)
  }
}

/*
 * The working directory of the child server. It is removed before the ports open.
 *
 * Called like `clickhouse local`, ClickHouse lets each of its users read and write the files of this account: with
 * the function `file`, which needs no grant, and with formats that take a file name as a setting. All of them first
 * ask for the working directory, and fail if there is none (test/integration/clickhouse-server/analyst-rights.test.ts).
 * ClickHouse itself does not start without one. So the session that opens the ports first fetches a page from here.
 * The request shows that ClickHouse has started, and it is answered after the directory has been removed.
 */

/** Creates the directory, and removes it when the page is fetched. Its disposal stops waiting for that. */
async function openWorkingDirectory(path: string) {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const route = `/${randomUUID()}`
  const server = createServer((request, response) => {
    const isOurs = request.url === route
    if (isOurs) rmSync(path, { recursive: true, force: true })
    response.writeHead(isOurs ? 200 : 404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    page: `http://127.0.0.1:${(server.address() as AddressInfo).port}${route}`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
