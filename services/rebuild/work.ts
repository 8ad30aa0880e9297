/** What the parts of a rebuild share. */
import type { Logger } from 'pino'
import type { StateEncoder } from '../../contracts/events/codec.ts'
import { currencyDigits } from '../../contracts/events/currencies.ts'
import type { FolderSettings } from '../projector/folder.ts'
import type { Sleep } from '../projector/sleep.ts'
import type { Config } from '../shared/config.ts'
import type { History } from '../shared/event-log/history.ts'
import type { SchemaRegistry } from '../shared/schema-registry.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { RebuildState, WorkPhase } from './rebuild-log.ts'
import type { ShadowModel } from './shadow-model.ts'
import type { WorkLog } from './work-log.ts'

export interface RebuildDependencies {
  tables: Tables
  databases: Databases
  history: History
  config: Config
  /** 64 hex digits: the key of the backer hashes. */
  backerKey: string
  schemaRegistry?: SchemaRegistry | undefined
  /** Frames archived events as the log's are framed. Default: with the fixed schema ids. */
  encode?: StateEncoder
  /** Names this run; unique. */
  run: string
  /** Whether no other process can be at work on these tables. */
  isAlone: boolean
  /** More changed rows than this are stamped after the exchange: nobody folds while they are. Default: 10,000. */
  stampedUnderHoldMax?: number
  logger: Logger
  onProgress: (state: RebuildState) => void
  /** Unix ms. */
  now: () => number
  monotonicMs: () => number
  random: () => number
}

/** A rebuild on its way. Its `tables` try again what may yet succeed. */
export interface Work extends RebuildDependencies {
  /** The same, such that do not. */
  hastyTables: Tables
  log: WorkLog
  model: ShadowModel
  sleep: Sleep
  signal: AbortSignal
}

/** Begins a phase that may still be given up. */
export async function enter({ log, signal }: Work, phase: WorkPhase): Promise<void> {
  signal.throwIfAborted()
  await log.enter(phase)
}

/** Who goes back wants the generation before as it was, with whatever was wrong in it. */
export function isBack({ log }: Work): boolean {
  return log.detail.request.kind === 'back'
}

/** What a fold is made with. */
export function folderSettings(config: Config): FolderSettings {
  return {
    horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    settleMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    platformDigits: currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2,
    campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
  }
}
