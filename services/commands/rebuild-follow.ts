/** Follows a rebuild to its end and tells of it: a painted line on a terminal, a line a second elsewhere. */
import { setTimeout as delay } from 'node:timers/promises'
import type { RebuildDesk, RebuildReport } from '../rebuild/desk.ts'
import type { RebuildState } from '../rebuild/rebuild-log.ts'
import { createPaintedLine } from '../shared/progress.ts'
import { type Io, printJson } from './command.ts'
import { progressJson } from './rebuild-json.ts'
import { finishedLine, finishedPhases, paintedText, progressLine } from './rebuild-view.ts'

/** What is said of a rebuild on its way. */
export interface Teller {
  tell(state: RebuildState): void
  /** Says what there is still to say, and leaves the terminal clean. */
  end(state: RebuildState): void
}

const lookMs = 250
const tellMs = 1_000

/**
 * Resolves with the last report, once nobody is at the rebuild any more, or with the latest when the signal aborts.
 * Throws where another rebuild has begun since.
 */
export async function followRebuild(
  desk: Pick<RebuildDesk, 'report'>,
  first: RebuildReport,
  teller: Teller,
  signal: AbortSignal,
): Promise<RebuildReport> {
  let report = first
  try {
    while (report.isAlive && !signal.aborted) {
      teller.tell(report.state)
      await delay(lookMs, undefined, { signal }).catch(() => undefined)
      report = await latestOf(desk, first.state.id)
    }
    return report
  } finally {
    teller.end(report.state)
  }
}

async function latestOf(desk: Pick<RebuildDesk, 'report'>, id: string): Promise<RebuildReport> {
  const report = await desk.report()
  if (report?.state.id === id) return report
  throw new Error(`the rebuild ${id} is over, and another has begun: see pledgeview rebuild status`)
}

/** For a person at a terminal, on stderr: the phase that runs is painted, those that have ended stay. */
export function terminalTeller({ stderr }: Io): Teller {
  const line = createPaintedLine({ stream: stderr })
  const untold = untoldPhases()
  function tellFinished(state: RebuildState): void {
    const finished = untold(state)
    if (finished.length === 0) return
    line.wipe()
    for (const phase of finished) stderr.write(`${finishedLine(phase)}\n`)
  }
  return {
    tell(state) {
      tellFinished(state)
      line.paint(() => paintedText(state))
    },
    end(state) {
      line.wipe()
      tellFinished(state)
    },
  }
}

/** For a log, on stderr: a line a second, and one for every phase that has ended. */
export function lineTeller({ stderr }: Io, monotonicMs = () => performance.now()): Teller {
  const untold = untoldPhases()
  const isDue = everySecond(monotonicMs)
  function tellFinished(state: RebuildState): void {
    for (const phase of untold(state)) stderr.write(`${finishedLine(phase)}\n`)
  }
  return {
    tell(state) {
      tellFinished(state)
      if (isDue()) stderr.write(`${progressLine(state)}\n`)
    },
    end: tellFinished,
  }
}

/** For a program, on stdout: an object a second. */
export function jsonTeller(io: Io, monotonicMs = () => performance.now()): Teller {
  const isDue = everySecond(monotonicMs)
  return {
    tell(state) {
      if (isDue()) printJson(io, progressJson(state))
    },
    end() {},
  }
}

/** Each phase once, when it has ended. One that comes again, as after a hold that was lost, was told of. */
function untoldPhases(): (state: RebuildState) => ReturnType<typeof finishedPhases> {
  const told = new Set<string>()
  return state => {
    const finished = finishedPhases(state).filter(({ phase }) => !told.has(phase))
    for (const { phase } of finished) told.add(phase)
    return finished
  }
}

function everySecond(monotonicMs: () => number): () => boolean {
  let toldAt = Number.NEGATIVE_INFINITY
  return () => {
    if (monotonicMs() - toldAt < tellMs) return false
    toldAt = monotonicMs()
    return true
  }
}
