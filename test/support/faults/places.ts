/** The places of projectors and query processes. One process after another occupies each place. */
import type { Deployment } from '../deployment/deployment.ts'
import { type LaunchedProcess, launchProcess, type ServiceProcess } from '../deployment/service-process.ts'

/** The process in this place; it may still be starting. `output`: of all processes that have been in it. */
export interface Place extends Pick<LaunchedProcess, 'hasEnded' | 'output' | 'stop'> {
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when the process runs, which is when the group has assigned its partitions. */
  ready(): Promise<ServiceProcess>
  /** kill -9. Throws if the process has ended by itself. */
  kill(): Promise<void>
  /** Starts a process in the place again, without waiting for it. */
  start(settings?: Readonly<Record<string, string>>): void
  /** Kills it, and starts the next one. */
  restart(settings?: Readonly<Record<string, string>>): Promise<void>
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

  const place: Place = {
    hasEnded: () => launched.hasEnded(),
    output: () => earlier + launched.output(),
    stop: signal => launched.stop(signal),
    signal: signal => void launched.child.kill(signal),
    ready: () => launched.started,
    async kill() {
      if (launched.hasEnded())
        throw new Error(`a process ended by itself:\n${launched.output().slice(-2_000)}`)
      await launched.stop('SIGKILL')
    },
    start(settings) {
      earlier += launched.output()
      launched = launch(settings)
    },
    async restart(settings) {
      await place.kill()
      place.start(settings)
    },
  }
  return place
}
