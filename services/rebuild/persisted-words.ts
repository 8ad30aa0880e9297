/**
 * The words of the rebuild log that differ from the program's words.
 *
 * The tables of running systems hold `exchanging` for the phase `swapping`, and `back` for a rollback. They are still
 * written in the old words, so that processes of an older version, which may run beside this one or after it, understand
 * what they read: an older projector completes a swap only if the log says `exchanging`. Both forms are read.
 */
import type { Phase, RebuildDetail, RebuildRequest } from './rebuild-log.ts'

const oldPhases: Readonly<Partial<Record<Phase, string>>> = { swapping: 'exchanging' }
const oldKinds: Readonly<Partial<Record<RebuildRequest['kind'], string>>> = { rollback: 'back' }

/** The phase that a row of the log is in. */
export function phaseOf(persisted: string): Phase {
  return programWord(oldPhases, persisted) as Phase
}

/** How a phase is written into the log. */
export function persistedPhase(phase: Phase): string {
  return oldPhases[phase] ?? phase
}

/** The detail of a row of the log. Throws if it is not JSON. */
export function detailOf(persisted: string): RebuildDetail {
  const detail = JSON.parse(persisted) as RebuildDetail
  const { request, phaseMs } = detail
  return {
    ...detail,
    request: { ...request, kind: programWord(oldKinds, request.kind) as RebuildRequest['kind'] },
    phaseMs: withKeys(phaseMs, phaseOf),
  }
}

/** How a detail is written into the log. */
export function persistedDetail(detail: RebuildDetail): string {
  const { request, phaseMs } = detail
  return JSON.stringify({
    ...detail,
    request: { ...request, kind: oldKinds[request.kind] ?? request.kind },
    phaseMs: withKeys(phaseMs, name => persistedPhase(name as Phase)),
  })
}

function programWord(oldWords: Readonly<Record<string, string>>, persisted: string): string {
  const renamed = Object.entries(oldWords).find(([, old]) => old === persisted)
  return renamed ? renamed[0] : persisted
}

function withKeys<T>(
  values: Readonly<Record<string, T>>,
  nameOf: (name: string) => string,
): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [nameOf(name), value]))
}
