/**
 * A reader of a guide, as a program: it pastes the guide's lines into bash.
 *
 * Lines run as they are, except for what a reader changes too:
 * - a port of the guides (8080, 9090, ...) is replaced by the port of the test's service;
 * - KEY and SECRET are those that `keys issue` last printed in this guide;
 * - `npm ci` was done before, and `npm start` is given the ports.
 *
 * The reader's folder looks like a checkout. It has links to this one, so that `.pledgeview` and files that the lines create
 * stay separate.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { installedUv, uvProgram, uvSettings } from '../clients/programs.ts'
import { fetched, requirementOf } from '../support/runner/programs.ts'
import type { Requirement } from '../support/runner/requirements.ts'
import { type Block, root } from './blocks.ts'
import { differenceOf } from './shown.ts'

export interface Reader {
  folder: string
  /** Pastes the lines of a block. Throws if they fail, or if their output differs from the guide. */
  paste(block: Block): Promise<void>
  /** Pastes a line that keeps running. Resolves once it has printed the sign. */
  start(text: string, sign: string): Promise<ChildProcess>
  /** Forgets the keys of the previous guide. */
  turnPage(): void
  /** Ends everything that still runs, and removes the folder. */
  close(): Promise<void>
}

export interface ReaderOptions {
  /** The guides' ports, and their replacements. */
  ports: Readonly<Record<number, number>>
  environment?: Readonly<Record<string, string>>
}

// A printed key is folded already. Events that were appended with it follow soon. Pages may be cached for 60 s.
const shownMsMax = 90_000
const signMsMax = 120_000
const endMsMax = 20_000
// Its lines install by pip itself; the others by uv, in its place.
const pipGuide = 'contracts/events/README.md'
const notLinked = new Set(['.git', '.pledgeview', '.env'])

export function openReader({ ports, environment = {} }: ReaderOptions): Reader {
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-guide-'))
  for (const name of readdirSync(root)) {
    if (!notLinked.has(name)) symlinkSync(join(root, name), join(folder, name))
  }
  const path = `${addCommand(folder)}:${process.env.PATH}`
  // Most of what pip compiles is never imported.
  const pip = { PIP_NO_COMPILE: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1', ...uvSettings }
  const env = { ...process.env, ...pip, ...environment, PATH: path }
  const quickEnv = { ...env, PATH: `${addQuickPip(folder)}:${path}` }
  const running: ChildProcess[] = []
  let credentials: { key: string; secret: string } | undefined

  function filled(text: string): string {
    const withPorts = text.replace(/\b\d{4}\b/g, port => String(ports[Number(port)] ?? port))
    const started = withPorts
      .replace(/^npm ci\n/m, '')
      .replace(/^npm start$/m, `npm start -- ${flags(ports)}`)
    if (!credentials) return started
    return started.replace(/\bKEY\b/g, credentials.key).replace(/\bSECRET\b/g, credentials.secret)
  }

  /** The output of the lines: all of it, and stdout alone. */
  async function run(block: Block): Promise<{ output: string; stdout: string }> {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', filled(block.text)], {
      cwd: folder,
      env: block.guide === pipGuide ? env : quickEnv,
    })
    const output = collect(child.stdout, child.stderr)
    const stdout = collect(child.stdout)
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`the lines end with ${code}:\n${filled(block.text)}\n${output()}`)
    const [, key, secret] = /^key +(\S+)\nsecret +(\S+)$/m.exec(output()) ?? []
    if (key !== undefined && secret !== undefined) credentials = { key, secret }
    return { output: output(), stdout: stdout() }
  }

  return {
    folder,

    async paste(block) {
      const { shown } = block
      const deadline = performance.now() + shownMsMax
      for (;;) {
        const { output, stdout } = await run(block)
        const difference = shown && differenceOf(shown.language === 'json' ? stdout : output, shown)
        if (difference === undefined) return
        // Appended events may not be projected yet.
        if (performance.now() > deadline) throw new Error(`${difference}\nThe lines print:\n${output}`)
        await sleep(500)
      }
    },

    async start(text, sign) {
      // A separate process group, so that the interrupt reaches all of it, as from a terminal.
      const child = spawn('bash', ['-euo', 'pipefail', '-c', filled(text)], {
        cwd: folder,
        env,
        detached: true,
      })
      running.push(child)
      const output = collect(child.stdout, child.stderr)
      const deadline = performance.now() + signMsMax
      while (!output().includes(sign)) {
        const hasEnded = child.exitCode !== null || child.signalCode !== null
        if (hasEnded || performance.now() > deadline) {
          throw new Error(`"${sign}" was not said by:\n${filled(text)}\n${output()}`)
        }
        await sleep(50)
      }
      return child
    },

    turnPage() {
      credentials = undefined
    },

    async close() {
      await Promise.all(running.map(interrupt))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Interrupts as Ctrl-C does; kills what does not end. Resolves with the exit code. */
export async function interrupt(child: ChildProcess): Promise<number | null> {
  const { pid } = child
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const exit = once(child, 'close')
  signal(pid, 'SIGINT')
  const timer = setTimeout(() => signal(pid, 'SIGKILL'), endMsMax)
  await exit
  clearTimeout(timer)
  return child.exitCode
}

function signal(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name)
  } catch {
    // It has ended in the meantime.
  }
}

// Programs in the guides' lines that a machine may lack.
const programs = ['curl', 'kcat', 'openssl', 'python3', 'tar', 'xxd']

/** What the lines of a block need in addition to Node. */
export function programsOf(block: Block): Requirement {
  const missing = programs.filter(
    name => new RegExp(`\\b${name} `).test(block.text) && spawnSync('which', [name]).status !== 0,
  )
  return { isMet: missing.length === 0, reason: `not installed: ${missing.join(', ')}` }
}

let installs: Promise<Requirement> | undefined

/** Whether Python can install packages: it has the venv module, and a package index answers. It is asked once. */
export function pyPi(): Promise<Requirement> {
  installs ??= requirementOf('pip', async () => {
    const environment = uvSettings
    await fetched('python3', ['-m', 'ensurepip', '--version'])
    await fetched(await installedUv(), ['pip', 'compile', '--quiet', '--refresh', '-'], {
      stdin: 'fastavro',
      environment,
    })
  })
  return installs
}

/** Provides the program as a command by its name, as in the image. */
function addCommand(folder: string): string {
  const bin = join(folder, '.bin')
  mkdirSync(bin)
  writeScript(join(bin, 'pledgeview'), `exec '${process.execPath}' '${root}services/cli.ts' "$@"`)
  return bin
}

/** A `python3` that makes virtual environments with uv, and a `pip` in them that is uv's: a fifth of the CPU of venv and pip. */
function addQuickPip(folder: string): string {
  const bin = join(folder, '.quick')
  mkdirSync(bin)
  const pip = join(bin, 'pip')
  writeScript(pip, `of=$(dirname "$0"); shift; exec '${uvProgram}' pip install --python "$of/python" "$@"`)
  writeScript(
    join(bin, 'python3'),
    `PATH=\${PATH#*:}
[ "$1 $2" = '-m venv' ] || exec python3 "$@"
'${uvProgram}' venv --quiet --allow-existing --python python3 "$3" && cp '${pip}' "$3/bin/pip"`,
  )
  return bin
}

function writeScript(file: string, text: string): void {
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
}

function flags(ports: ReaderOptions['ports']): string {
  const byFlag = {
    port: 8080,
    'portal-port': 8081,
    'ops-port': 9090,
    'sql-port': 8123,
    'sql-native-port': 9000,
  }
  return Object.entries(byFlag)
    .map(([flag, port]) => `--${flag} ${ports[port]}`)
    .join(' ')
}

function collect(...streams: readonly Readable[]): () => string {
  let output = ''
  for (const stream of streams) {
    stream.on('data', (data: Buffer) => {
      output += data.toString()
    })
  }
  return () => output
}
