/**
 * Parts of a bench in processes of their own: ClickHouse runs in-process, one data directory a process, and a server
 * must not share its core with the load that is put on it.
 *
 * A process speaks once when it is ready, and then only when it is asked. Nothing outlives the bench: a process ends
 * when the channel to it closes, and is killed when that takes too long.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

export interface BenchProcess<Ready> {
  ready: Ready
  /** Sends a request and resolves with its answer. Rejects where the process ends or is silent for too long. */
  ask<Answer>(request: object): Promise<Answer>
  end(): Promise<void>
}

export interface BenchProcessOptions {
  /** Path of a file, beside or below this one. */
  script: string
  /** Handed over as JSON. */
  input: object
  /** How long it may take to be ready, and to answer. */
  msMax: number
  /** Flags of Node. Default: those of `npm start`, so that what is measured is what is run. */
  flags?: readonly string[]
}

const endMsMax = 15_000
const running = new Set<ChildProcess>()
const packageFile = new URL('../../package.json', import.meta.url)

/** Starts a process, and resolves once it is ready. */
export async function startBenchProcess<Ready>(options: BenchProcessOptions): Promise<BenchProcess<Ready>> {
  const { script, input, msMax, flags = startFlags(readFileSync(packageFile, 'utf8')) } = options
  const child = fork(new URL(script, import.meta.url), [JSON.stringify(input)], {
    execArgv: [...flags],
    serialization: 'advanced',
    // The bench's own stdout may be JSON.
    stdio: ['ignore', 2, 2, 'ipc'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  try {
    return {
      ready: await nextMessage<Ready>(child, script, msMax),
      ask<Answer>(request: object) {
        const answer = nextMessage<Answer>(child, script, msMax)
        child.send(request)
        return answer
      },
      end: () => endProcess(child),
    }
  } catch (error) {
    await endProcess(child)
    throw error
  }
}

/** Starts a process that has one result, and ends it. */
export async function runBenchProcess<Result>(options: BenchProcessOptions): Promise<Result> {
  const { ready, end } = await startBenchProcess<Result>(options)
  await end()
  return ready
}

/** Ends at once whatever still runs, for a bench that is interrupted. */
export async function killBenchProcesses(): Promise<void> {
  const exits = [...running].map(child => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(exits)
}

/** The process's side: what it was started with. From here on it ends with the bench, whatever it is at. */
export function benchInput<Input>(): Input {
  process.once('disconnect', endAbandoned)
  return JSON.parse(process.argv[2] ?? '{}') as Input
}

/** The process's side: says that it is ready, answers requests, and closes when nobody listens any more. */
export function serveBench({
  ready,
  answer,
  close,
}: {
  ready: object
  answer?: (request: never) => Promise<object>
  close?: () => Promise<void>
}): void {
  process.off('disconnect', endAbandoned)
  process.once('disconnect', async () => {
    await close?.()
    process.exit()
  })
  process.on('message', async request => {
    process.send?.(await answer?.(request as never))
  })
  process.send?.(ready)
}

/** The processor time, ms, that the calling thread has taken since it asked last. The event loop runs on one thread. */
export function createCpuMeter(): () => number {
  let last = process.threadCpuUsage()
  return () => {
    const { user, system } = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    return (user + system) / 1000
  }
}

/** The flags between `node` and the script in the package's start script. */
export function startFlags(packageJson: string): string[] {
  const { scripts } = JSON.parse(packageJson) as { scripts: { start: string } }
  const words = scripts.start.split(' ').slice(1)
  return words.slice(
    0,
    words.findIndex(word => !word.startsWith('-')),
  )
}

// ClickHouse would let an exit wait for the statement that is running.
function endAbandoned(): void {
  process.kill(process.pid, 'SIGKILL')
}

function nextMessage<T>(child: ChildProcess, script: string, msMax: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => settle(() => reject(new Error(`${script} is silent for ${msMax} ms`))),
      msMax,
    )
    const onMessage = (message: unknown) => settle(() => resolve(message as T))
    const onExit = (code: number | null, signal: string | null) =>
      settle(() => reject(new Error(`${script} ended before it answered (${code ?? signal})`)))
    child.once('message', onMessage)
    child.once('exit', onExit)
    function settle(how: () => void): void {
      clearTimeout(timer)
      child.off('message', onMessage)
      child.off('exit', onExit)
      how()
    }
  })
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), endMsMax)
  if (child.connected) child.disconnect()
  await exited
  clearTimeout(timer)
}
