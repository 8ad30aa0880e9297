/**
 * Starts the parts of `npm run stack`, says at once when one ends, and why, and starts it again as systemd would: after a second, or
 * after a minute if it ended `startsMax` times within one. The others go on.
 */
export interface Part {
  name: string
  /** Starts it, or starts it again with its data. Resolves once it is ready; rejects with the reason. */
  start(): Promise<RunningPart>
}

export interface RunningPart {
  /** Shown beside the name. */
  place: string
  pid?: number | undefined
  kill?: () => void
  /** Resolves with the reason when it has ended. */
  ended: Promise<string>
  stop(): Promise<unknown>
}

export interface Supervisor {
  /** Resolves when the part runs. Rejects if it cannot be started, again and again. */
  start(part: Part): Promise<RunningPart>
  /** Stops all, the last first. */
  stop(): Promise<void>
}

interface Dependencies {
  say: (text: string) => void
  sleep: (ms: number) => Promise<unknown>
  nowMs: () => number
}

const startsMax = 5
const withinMs = 60_000
const pauseMs = 1_000

export function superviseParts({ say, sleep, nowMs }: Dependencies): Supervisor {
  const running = new Map<Part, RunningPart>()
  let isStopping = false
  // A run that fails to stop leaves no process behind.
  process.once('exit', () => {
    for (const { kill } of running.values()) kill?.()
  })

  async function launch(part: Part): Promise<RunningPart> {
    const started = await part.start()
    running.set(part, started)
    if (isStopping) await started.stop()
    return started
  }

  async function watch(part: Part, first: RunningPart): Promise<void> {
    const ends: number[] = []
    let reason = await first.ended
    while (!isStopping) {
      ends.push(nowMs())
      const isOften = ends.filter(at => at > nowMs() - withinMs).length >= startsMax
      say(
        `${part.name} ended: ${reason}\n  ${isOften ? `${startsMax} times within a minute, so it is started again in a minute. The rest goes on.` : 'It is started again.'}`,
      )
      await sleep(isOften ? withinMs : pauseMs)
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
    async start(part) {
      say(`starting ${part.name} ...`)
      for (let starts = 1; ; starts++) {
        try {
          const started = await launch(part)
          void watch(part, started)
          return started
        } catch (cause) {
          if (starts === startsMax || isStopping) throw cause
          say(`${part.name} did not start: ${(cause as Error).message}\n  It is started again.`)
          await sleep(pauseMs)
        }
      }
    },
    async stop() {
      isStopping = true
      for (const part of [...running.keys()].toReversed()) await running.get(part)?.stop()
    },
  }
}

export function processOf({ pid }: RunningPart): string {
  return pid === undefined ? '' : ` (process ${pid})`
}
