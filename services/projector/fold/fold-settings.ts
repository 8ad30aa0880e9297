/** The settings of the fold, from the configuration. */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import type { Config } from '../../runtime/config.ts'
import type { FoldWorkerSettings } from './fold-worker.ts'

export function foldWorkerSettings(config: Config): FoldWorkerSettings {
  return {
    foldMsMax: config.PLEDGEVIEW_FOLD_MS_MAX,
    platformDigits: currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2,
    campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
    memoryBytesMax: config.PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX,
    aloneMsMax: config.PLEDGEVIEW_FOLD_ALONE_MS_MAX,
  }
}
