/** The default request of tests and benches. */
import type { RebuildRequest } from '../../../services/generations/rebuild-log.ts'

/** Reads the whole log, and accepts no loss. */
export const wholeRequest: RebuildRequest = {
  kind: 'rebuild',
  isDry: false,
  acceptsLoss: false,
  ignoresDisk: false,
}
