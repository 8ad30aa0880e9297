/** The places of projectors and query processes. One process after another occupies each place. */
import { launchProcess, type ServiceProcess } from '../deployment/service-process.ts'

type Settings = Readonly<Record<string, string>>
export type Place = ReturnType<typeof createPlace>

/** A place whose process may still be starting. */
export function createPlace(command: 'projector' | 'query', environment: Settings) {
  let launched = launch()
  let earlier = ''

  function launch(settings: Settings = {}) {
    const process = launchProcess([command], { ...environment, ...settings })
    // A process that is killed while it starts never becomes ready.
    process.started.catch(() => undefined)
    return process
  }

  const place = {
    hasEnded: () => launched.hasEnded(),
    /** Of all processes that have been in it. */
    output: () => earlier + launched.output(),
    stop: (signal?: NodeJS.Signals) => launched.stop(signal),
    signal: (signal: 'SIGSTOP' | 'SIGCONT') => void launched.child.kill(signal),
    /** Resolves when the process runs, which is when the group has assigned its partitions. */
    ready: (): Promise<ServiceProcess> => launched.started,
    /** kill -9. Throws if the process has ended by itself. */
    async kill(): Promise<void> {
      if (launched.hasEnded())
        throw new Error(`a process ended by itself:\n${launched.output().slice(-2_000)}`)
      await launched.stop('SIGKILL')
    },
    /** Starts a process in the place again, without waiting for it. */
    start(settings?: Settings): void {
      earlier += launched.output()
      launched = launch(settings)
    },
    /** Kills it, and starts the next one. */
    async restart(settings?: Settings): Promise<void> {
      await place.kill()
      place.start(settings)
    },
  }
  return place
}
