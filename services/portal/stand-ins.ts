/** Plain forms of the portal's ports, for what has no full implementation yet. */
import type { LiveStateReader } from './ports.ts'

/** Says nothing of the data. */
export const unknownLiveState: LiveStateReader = {
  read: async () => ({ status: 'unavailable', campaigns: undefined, as_of: undefined }),
}
