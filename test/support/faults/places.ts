/** The places of projectors and query processes. One process after another occupies each place. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Deployment } from '../deployment/deployment.ts'
import { launchProcess, type ServiceProcess } from '../deployment/service-process.ts'

export interface Place {
  /** The process in this place; it may still be starting. */
  child(): ChildProcess
  /** Of all processes that have been in it. */
  output(): string
  /** Resolves when the process runs, which is when the group has assigned its partitions. */
  ready(): Promise<ServiceProcess>
  /** kill -9. Throws if the process has ended by itself. */
  kill(): Promise<void>
  /** Interrupts it. Resolves with its exit code. */
  stop(): Promise<number | null>
  /** Starts a process in the place again, without waiting for it. */
  start(settings?: Readonly<Record<string, string>>): void
  hasEnded(): boolean
}

export function createPlace(command: 'projector' | 'query', environment: Deployment['environment']): Place {
  let launched = launch()
  let earlier = ''

  function launch(settings: Readonly<Record<string, string>> = {}) {
    const process = launchProcess([command], { ...environment, ...settings })
    // A process that is killed while it starts never becomes ready.
    process.started.catch(() => undefined)
    return process
  }

  const hasEnded = () => launched.child.exitCode !== null || launched.child.signalCode !== null

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = launched
    if (hasEnded()) return child.exitCode
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
    return child.exitCode
  }

  return {
    child: () => launched.child,
    output: () => earlier + launched.output(),
    ready: () => launched.started,
    async kill() {
      if (hasEnded()) throw new Error(`a process ended by itself:\n${launched.output().slice(-2_000)}`)
      await end('SIGKILL')
    },
    stop: () => end('SIGINT'),
    start(settings) {
      earlier += launched.output()
      launched = launch(settings)
    },
    hasEnded,
  }
}
