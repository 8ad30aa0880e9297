/** Reports the progress of a rebuild: painted on a terminal, a line a second in a log, an object a second for a program. */
import type { RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { createPaintedLine } from '../../runtime/progress.ts'
import { type Io, printJson } from '../command.ts'
import { progressJson } from './json.ts'
import { finishedLine, finishedPhases, progressLine } from './view.ts'

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
    latest = report
    return report
  } finally {
    clearInterval(reporting)
    if (latest) reporter.end(latest)
  }
}

export function createReporter(
  io: Io,
  { asJson, monotonicMs = () => performance.now() }: { asJson: boolean; monotonicMs?: () => number },
): ProgressReporter {
  const { stderr } = io
  const isTerminal = !asJson && 'isTTY' in stderr && stderr.isTTY === true
  const line = createPaintedLine({ stream: stderr })
  const reported = new Set<string>()
  let reportedAt = Number.NEGATIVE_INFINITY

  /** Each finished phase once. One that runs again, for example after a kill, is not reported again. */
  function reportFinished(state: RebuildState): void {
    const finished = asJson ? [] : finishedPhases(state).filter(({ phase }) => !reported.has(phase))
    if (finished.length > 0 && isTerminal) line.wipe()
    for (const one of finished) {
      reported.add(one.phase)
      stderr.write(`${finishedLine(one)}\n`)
    }
  }

  return {
    report(state) {
      reportFinished(state)
      if (isTerminal) line.paint(() => progressLine(state))
      else if (monotonicMs() - reportedAt >= reportMs) {
        reportedAt = monotonicMs()
        if (asJson) printJson(io, progressJson(state))
        else stderr.write(`${progressLine(state)}\n`)
      }
    },
    end(state) {
      if (isTerminal) line.wipe()
      reportFinished(state)
    },
  }
}
