/** Follows a rebuild to its end and reports its progress: a progress bar on a terminal, otherwise a line a second. */
import { setTimeout as delay } from 'node:timers/promises'
import type { RebuildController, RebuildReport } from '../../rebuild/rebuild-controller.ts'
import type { RebuildState } from '../../rebuild/rebuild-log.ts'
import { createPaintedLine } from '../../shared/progress.ts'
import { type Io, printJson } from '../command.ts'
import { progressJson } from './json.ts'
import { finishedLine, finishedPhases, paintedText, progressLine } from './view.ts'

/** Reports the progress of a rebuild. */
export interface ProgressReporter {
  report(state: RebuildState): void
  /** Reports what is left to report, and cleans up the terminal. */
  end(state: RebuildState): void
}

const lookMs = 250
const reportMs = 1_000

/**
 * Resolves with the last report when no process works on the rebuild any more, or when the signal aborts.
 * Throws if another rebuild has begun since.
 */
export async function followRebuild(
  controller: Pick<RebuildController, 'report'>,
  first: RebuildReport,
  reporter: ProgressReporter,
  signal: AbortSignal,
): Promise<RebuildReport> {
  let report = first
  try {
    while (report.isAlive && !signal.aborted) {
      reporter.report(report.state)
      await delay(lookMs, undefined, { signal }).catch(() => undefined)
      report = await latestOf(controller, first.state.id)
    }
    return report
  } finally {
    reporter.end(report.state)
  }
}

async function latestOf(controller: Pick<RebuildController, 'report'>, id: string): Promise<RebuildReport> {
  const report = await controller.report()
  if (report?.state.id === id) return report
  throw new Error(`the rebuild ${id} is over, and another one has begun: see pledgeview rebuild status`)
}

/** For a person at a terminal, on stderr: a progress bar for the running phase, and a line for each finished one. */
export function terminalReporter({ stderr }: Io): ProgressReporter {
  const line = createPaintedLine({ stream: stderr })
  const unreported = unreportedPhases()
  function reportFinished(state: RebuildState): void {
    const finished = unreported(state)
    if (finished.length === 0) return
    line.wipe()
    for (const phase of finished) stderr.write(`${finishedLine(phase)}\n`)
  }
  return {
    report(state) {
      reportFinished(state)
      line.paint(() => paintedText(state))
    },
    end(state) {
      line.wipe()
      reportFinished(state)
    },
  }
}

/** For a log, on stderr: a line a second, one for each wait, and one for each finished phase. */
export function lineReporter({ stderr }: Io, monotonicMs = () => performance.now()): ProgressReporter {
  const unreported = unreportedPhases()
  const isDue = everySecond(monotonicMs)
  function reportFinished(state: RebuildState): void {
    for (const phase of unreported(state)) stderr.write(`${finishedLine(phase)}\n`)
  }
  return {
    report(state) {
      reportFinished(state)
      if (isDue(state)) stderr.write(`${progressLine(state)}\n`)
    },
    end: reportFinished,
  }
}

/** For a program, on stdout: one JSON object a second, and one for each wait. */
export function jsonReporter(io: Io, monotonicMs = () => performance.now()): ProgressReporter {
  const isDue = everySecond(monotonicMs)
  return {
    report(state) {
      if (isDue(state)) printJson(io, progressJson(state))
    },
    end() {},
  }
}

/** Returns each finished phase once. A phase that runs again, for example after a lost fold pause, is not returned again. */
function unreportedPhases(): (state: RebuildState) => ReturnType<typeof finishedPhases> {
  const reported = new Set<string>()
  return state => {
    const finished = finishedPhases(state).filter(({ phase }) => !reported.has(phase))
    for (const { phase } of finished) reported.add(phase)
    return finished
  }
}

/** Whether a state is due. A new wait is due at once, because no other state may follow until it ends. */
function everySecond(monotonicMs: () => number): (state: RebuildState) => boolean {
  let reportedAt = Number.NEGATIVE_INFINITY
  let reportedWait: string | null | undefined
  return ({ detail: { waitsFor } }) => {
    const isNewWait = waitsFor && waitsFor !== reportedWait
    reportedWait = waitsFor
    if (!isNewWait && monotonicMs() - reportedAt < reportMs) return false
    reportedAt = monotonicMs()
    return true
  }
}
