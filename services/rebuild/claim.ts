/** Who may work on a rebuild: one process at a time, on the one that is open or on a new one. */
import { readFileSync } from 'node:fs'
import type { Sleep } from '../projector/sleep.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { hasShadow } from './generation.ts'
import {
  aliveMs,
  isAlive,
  isCommitted,
  isWorking,
  latestRebuild,
  RebuildInProgress,
  type RebuildRequest,
  type RebuildState,
  rivalOf,
  writeRebuild,
} from './rebuild-log.ts'

export interface ClaimDependencies {
  tables: Tables
  databases: Databases
  /** Names this run; unique. */
  run: string
  /** Whether no other process can be at work, as in an embedded service. */
  isAlone: boolean
  sleep: Sleep
  /** Unix ms. */
  now: () => number
}

/** What was asked for cannot be begun as things are. The message says what can be done. */
export class RebuildRefused extends Error {
  override name = 'RebuildRefused'
}

const programVersion = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  .version as string
const lookMs = 500
const rivalMs = 1_000

/**
 * Takes the open rebuild, where it is the one that was asked for and its process is dead, or begins a new one.
 * Throws `RebuildInProgress` or `RebuildRefused`.
 */
export async function claim(dependencies: ClaimDependencies, request: RebuildRequest): Promise<RebuildState> {
  const { tables, databases, run, isAlone, sleep } = dependencies
  const latest = await untilDead(dependencies)
  const state =
    latest && isWorking(latest) ? resumed(latest, request) : await begun(dependencies, request, latest)
  const claimed = { ...state, run }
  await writeRebuild(tables, databases, claimed)
  if (!isAlone) {
    // Two that begin at once do not see each other at first.
    await sleep(rivalMs)
    const rival = await rivalOf(tables, databases, run)
    if (rival !== undefined) throw new RebuildInProgress(`another rebuild began at the same time (${rival})`)
  }
  return claimed
}

/** The latest rebuild, once it has shown no sign of life for long enough. One that shows another is alive. */
async function untilDead({ tables, databases, isAlone, sleep }: ClaimDependencies) {
  const first = await latestRebuild(tables, databases)
  for (let state = first; ; state = await latestRebuild(tables, databases)) {
    if (!state || isAlone || !isAlive(state)) return state
    if (state.writtenAt !== first?.writtenAt) {
      throw new RebuildInProgress(
        `a rebuild is running (${state.phase}, begun ${state.detail.startedAt}); pledgeview rebuild status tells of it`,
      )
    }
    await sleep(Math.min(lookMs, aliveMs - state.ageMs + 1))
  }
}

function resumed(state: RebuildState, request: RebuildRequest): RebuildState {
  const { acceptsLoss, ignoresDisk } = request
  const asked = { ...request, acceptsLoss: false, ignoresDisk: false }
  const open = { ...state.detail.request, acceptsLoss: false, ignoresDisk: false }
  if (JSON.stringify(asked) !== JSON.stringify(open) || (state.isAborting && !isCommitted(state))) {
    throw new RebuildRefused(
      `a ${nameOf(open)} that began ${state.detail.startedAt} is not finished (${state.phase}): run the same again to go ` +
        'on with it, or give it up with pledgeview rebuild abort',
    )
  }
  const detail = { ...state.detail, request: { ...open, acceptsLoss, ignoresDisk }, failure: null }
  if (detail.program === programVersion || isCommitted(state) || request.kind === 'back') {
    return { ...state, detail }
  }
  // Another program may have other rules, and a ledger of two would pass every check: it begins anew.
  return {
    ...state,
    phase: 'preparing',
    detail: { ...detail, program: programVersion, records: 0, rejects: 0 },
  }
}

async function begun(
  { tables, databases, run, now }: ClaimDependencies,
  request: RebuildRequest,
  latest: RebuildState | undefined,
): Promise<RebuildState> {
  if (request.kind === 'back' && request.isDry) throw new RebuildRefused('a way back cannot be tried dry')
  const keepsPrevious = latest?.phase === 'rebuilt' && (await hasShadow(tables, databases))
  if (request.kind === 'rebuild' && keepsPrevious) {
    throw new RebuildRefused(
      'the generation before the last rebuild is still there, and a new one would take its place: drop it with ' +
        'pledgeview rebuild drop, or return to it with pledgeview rebuild back',
    )
  }
  if (request.kind === 'back' && !keepsPrevious) {
    throw new RebuildRefused('there is no generation to go back to')
  }
  const at = new Date(now()).toISOString()
  return {
    id: at.replace(/\D/g, '').slice(0, 17),
    run,
    phase: 'preparing',
    writtenAt: '',
    ageMs: 0,
    isAborting: false,
    detail: {
      request,
      startedAt: at,
      phaseMs: {},
      progress: null,
      records: 0,
      rejects: 0,
      logStart: null,
      differences: null,
      tableIds: null,
      unstampedSince: null,
      positions: request.kind === 'back' ? (latest?.detail.positions ?? null) : null,
      takesBack: request.kind === 'back' ? (latest?.id ?? null) : null,
      program: programVersion,
      failure: null,
    },
  }
}

function nameOf({ kind, isDry, files }: RebuildRequest): string {
  const from = files.length > 0 ? ` from ${files.join(', ')}` : ''
  return `${isDry ? 'dry ' : ''}${kind === 'back' ? 'way back' : 'rebuild'}${from}`
}
