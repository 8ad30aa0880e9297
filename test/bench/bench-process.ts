/**
 * Runs parts of a bench as separate processes: a server must not share its event loop with the load.
 *
 * A process sends one message when it is ready, and then only answers requests. No process outlives the bench: it exits when
 * its channel closes, and is killed if that takes too long.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

export interface BenchProcess<Ready> {
  ready: Ready
  /** Sends a request and resolves with its answer. Rejects if the process ends or does not answer in time. */
  ask<Answer>(request: object): Promise<Answer>
  end(): Promise<void>
}

export interface BenchProcessOptions {
  /** Path of a file, in this folder or below it. */
  script: string
  /** Passed as JSON. */
  input: object
  /** The longest time to become ready, and to answer. */
  msMax: number
}

const endMsMax = 15_000
const running = new Set<ChildProcess>()
const packageFile = new URL('../../package.json', import.meta.url)

/** Starts a process, and resolves once it is ready. */
export async function startBenchProcess<Ready>(options: BenchProcessOptions): Promise<BenchProcess<Ready>> {
  const { script, input, msMax } = options
  const child = fork(new URL(script, import.meta.url), [JSON.stringify(input)], {
    execArgv: startFlags(),
    serialization: 'advanced',
    // The bench may print JSON on its own stdout.
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

/** Starts a process that returns one result, and ends it. */
export async function runBenchProcess<Result>(options: BenchProcessOptions): Promise<Result> {
  const { ready, end } = await startBenchProcess<Result>(options)
  await end()
  return ready
}

/** Kills all processes that still run, when a bench is interrupted. */
export async function killBenchProcesses(): Promise<void> {
  const exits = [...running].map(child => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(exits)
}

/** Called by the process: returns its input. From then on the process exits when the bench does. */
export function benchInput<Input>(): Input {
  process.once('disconnect', endAbandoned)
  return JSON.parse(process.argv[2] ?? '{}') as Input
}

/** Called by the process: reports that it is ready, answers requests, and closes when the channel closes. */
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

/** The CPU time of the calling thread since the last call, ms. The event loop runs on one thread. */
export function createCpuMeter(): () => number {
  let last = process.threadCpuUsage()
  return () => {
    const { user, system } = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    return (user + system) / 1000
  }
}

/** The flags between `node` and the script in package.json's start script, so that the bench measures what is run. */
function startFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync(packageFile, 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter(word => word.startsWith('-'))
}

function endAbandoned(): void {
  process.kill(process.pid, 'SIGKILL')
}

function nextMessage<T>(child: ChildProcess, script: string, msMax: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => settle(() => reject(new Error(`${script} did not answer within ${msMax} ms`))),
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
