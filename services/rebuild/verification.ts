/** What a rebuild has to pass before the exchange. */
import type { EventReader } from '../shared/event-log/port.ts'
import { shadowOf } from './generation.ts'
import { catchUp } from './reading.ts'
import {
  type Knowledge,
  type Mismatch,
  missingKnowledge,
  rangesOf,
  stillMissing,
  verifyReadTables,
} from './verify.ts'
import { folderSettings, isBack, type Work } from './work.ts'

const idsPerStatement = 1_000

/** The rebuilt generation is not what it has to be. Nothing was exchanged. */
export class VerificationFailed extends Error {
  override name = 'VerificationFailed'
  readonly mismatches: readonly Mismatch[]

  constructor(message: string, mismatches: readonly Mismatch[]) {
    const lines = mismatches.slice(0, 10).map(({ place, reason }) => `\n  ${place} ${reason}`)
    super(`${message}${lines.join('')}`)
    this.mismatches = mismatches
  }
}

/** Everything, once, while nothing else happens to the shadow. Throws `VerificationFailed`. */
export async function verifyAll(work: Work, reader: EventReader): Promise<void> {
  const { tables, databases, log, model, logger, signal } = work
  const shadow = shadowOf(databases)
  const generations = { live: databases, rebuilt: shadow }
  const ranges = await rangesOf(tables, shadow)
  const missing: Knowledge[] = []
  model.takeTouched()
  for (const [done, range] of ranges.entries()) {
    signal.throwIfAborted()
    log.progress({ done, of: ranges.length, unit: 'ranges' })
    if (!isBack(work)) mustFit(await verifyReadTables(tables, shadow, range, folderSettings(work.config)))
    missing.push(...(await missingKnowledge(tables, generations, range, { alsoKeys: done === 0 })))
  }
  // The live projectors have gone on meanwhile: only what is missing once this one has, too, is missing.
  if (missing.length > 0) await catchUp(work, reader)
  const lost = await stillMissing(tables, generations, missing)
  if (lost.length > 0) {
    const message = `the live model knows more than the history that was read, in ${lost.length} places`
    if (!log.detail.request.acceptsLoss) {
      throw new VerificationFailed(
        `${message}; nothing was exchanged. Where that is meant to be, run it again with --accept-loss. The first:`,
        lost,
      )
    }
    logger.warn({ places: lost.length, first: lost[0] }, message)
  }
}

function mustFit(mismatches: readonly Mismatch[]): void {
  if (mismatches.length === 0) return
  throw new VerificationFailed(
    'the rebuilt read tables do not say what their ledger says; nothing was exchanged. The first:',
    mismatches,
  )
}

/** The campaigns that were folded since everything was verified. */
export async function verifyTouched(work: Work): Promise<void> {
  if (isBack(work)) return
  const { tables, databases, model, config } = work
  const touched = [...model.takeTouched()]
  for (let from = 0; from < touched.length; from += idsPerStatement) {
    const ids = touched.slice(from, from + idsPerStatement)
    mustFit(await verifyReadTables(tables, shadowOf(databases), { ids }, folderSettings(config)))
  }
}
