import { createMemoryResponseCache } from '../../../services/query/response-cache-memory.ts'
import { testClock } from '../../support/query-app.ts'
import { bytesMax, describeResponseCache } from './response-cache.conformance.ts'

describeResponseCache('memory', async () => {
  const clock = testClock()
  return {
    cache: createMemoryResponseCache({ bytesMax, now: clock.now }),
    now: async () => clock.now(),
    advance: async ms => clock.advance(ms),
    close: async () => undefined,
  }
})
