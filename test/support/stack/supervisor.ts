/** Starts the parts of `npm run stack`, says at once when one ends, and why, and starts it again. The others go on. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Part {
  name: string
  /** Starts it, or starts it again with its data. Resolves once it is ready; rejects with the reason. */
  start(): Promise<RunningPart>
}

export interface RunningPart {
  /** Shown beside the name. */
  place: string
  pid?: number | undefined
  /** Resolves with the reason when it has ended. */
  ended: Promise<string>
  stop(): Promise<unknown>
}

// What is said of a part that ends again and again can still be read.
const pauseMs = 2_000

export function superviseParts(say: (text: string) => void) {
  const running = new Map<Part, RunningPart>()
  let isStopping = false

  async function launch(part: Part): Promise<RunningPart> {
    const started = await part.start()
    running.set(part, started)
    if (isStopping) await started.stop()
    return started
  }

  async function watch(part: Part, first: RunningPart): Promise<void> {
    let reason = await first.ended
    while (!isStopping) {
      say(`${part.name} ended: ${reason}\n  It is started again.`)
      await sleep(pauseMs, undefined, { ref: false })
      if (isStopping) return
      try {
        const started = await launch(part)
        say(`${part.name} runs again: ${started.place}${processOf(started)}`)
        reason = await started.ended
      } catch (cause) {
        reason = `it could not be started: ${(cause as Error).message}`
      }
    }
  }

  return {
    /** Resolves when the part runs. Rejects if it cannot be started. */
    async start(part: Part): Promise<RunningPart> {
      say(`starting ${part.name} ...`)
      const started = await launch(part)
      void watch(part, started)
      return started
    },
    /** Stops all, the last first. */
    async stop(): Promise<void> {
      isStopping = true
      for (const part of [...running.keys()].toReversed()) await running.get(part)?.stop()
    },
  }
}

export function processOf({ pid }: RunningPart): string {
  return pid === undefined ? '' : ` (process ${pid})`
}
