/** The settings of the fold, from the configuration. */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { Config } from '../../shared/config.ts'
import type { FoldWorkerSettings } from './fold-worker.ts'

/** A fold of an earlier leader may run for half of the horizon. After a whole horizon it has certainly ended. */
export function foldWorkerSettings(config: Config): FoldWorkerSettings {
  return {
    horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    settleMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    platformDigits: currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2,
    campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
    memoryBytesMax: config.PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX,
    aloneMsMax: config.PLEDGEVIEW_FOLD_ALONE_MS_MAX,
  }
}
