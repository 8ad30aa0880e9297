/** Reports a rebuild while it runs: painted on a terminal, an object a second for a program, and each phase as it begins in a log. */
import type { RebuildState } from '../../generations/rebuild-log.ts'
import type { RebuildReport } from '../../generations/rebuilds.ts'
import { createPaintedLine } from '../../runtime/progress.ts'
import { type Io, printJson } from '../command.ts'
import { progressJson } from './json.ts'
import { progressLine } from './view.ts'

const paintMs = 250
const reportMs = 1_000

/** Runs a rebuild, and reports its latest state again and again, also while nothing new is known. */
export async function reported(
  io: Io,
  asJson: boolean,
  run: (onProgress: (state: RebuildState) => void) => Promise<RebuildReport>,
): Promise<RebuildReport> {
  const line = createPaintedLine({ stream: io.stderr })
  let latest: RebuildState | undefined
  const report = (state: RebuildState) =>
    asJson ? printJson(io, progressJson(state)) : line.paint(() => progressLine(state))
  const reporting = setInterval(() => latest && report(latest), asJson ? reportMs : paintMs)
  try {
    return await run(state => {
      if (!asJson && state.phase !== latest?.phase) {
        line.wipe()
        io.stderr.write(`${state.phase}\n`)
      }
      latest = state
    })
  } finally {
    clearInterval(reporting)
    line.wipe()
  }
}
