/** Reports the progress of a rebuild: a progress bar on a terminal, otherwise a line a second. */

import type { RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { createPaintedLine } from '../../runtime/progress.ts'
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

/** Runs a rebuild, and reports its latest state several times a second, also while nothing new is known. */
export async function reportOften(
  reporter: ProgressReporter,
  run: (onProgress: (state: RebuildState) => void) => Promise<RebuildReport>,
): Promise<RebuildReport> {
  let latest: RebuildState | undefined
  const reporting = setInterval(() => latest && reporter.report(latest), lookMs)
  try {
    const report = await run(state => {
      latest = state
    })
    latest = report.state
    return report
  } finally {
    clearInterval(reporting)
    if (latest) reporter.end(latest)
  }
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

/** Returns each finished phase once. A phase that runs again, for example after a kill, is not returned again. */
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
