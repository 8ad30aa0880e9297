/** The embedded service as `npm start` runs it, with demo events, an API key and no practical rate limit. */
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { issueKey, keyDirectory } from '../../../services/api-keys/api-keys.ts'
import { appendDemo } from '../../../services/demo/load-demo.ts'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { startEmbeddedService } from '../../../services/embedded/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createLogger } from '../../../services/runtime/ops/logger.ts'
import { benchInput, serveBench } from '../bench-process.ts'

export interface ApiServiceInput {
  directory: string
}

export interface ApiServiceReady {
  apiUrl: string
  headers: Record<string, string>
}

/** Requested before a load. */
export interface ServerRequest {
  /** Whether to log each request from now on. `npm start` on a terminal does not. */
  log: boolean
}

// As the service writes its log, but to a stream that is not read.
const logger = createLogger('warn', '/dev/null')
const service = await startEmbeddedService({
  directory: openDataDirectory(benchInput<ApiServiceInput>().directory),
  config: readConfig({
    PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '100000000',
    // Nothing may expire between two rounds, because the bench measures cached answers.
    PLEDGEVIEW_CACHE_MS: '3600000',
  }),
  port: 0,
  opsPort: 0,
  logger,
})
const { model } = service
await appendDemo(model.writer, Date.now())
await model.whenDrained()
const { key, secret } = await issueKey(
  {
    directory: keyDirectory(model.tables, model.databases),
    writer: model.writer,
    pepper: model.secrets.keyPepper,
    now: Date.now,
    monotonicMs: () => performance.now(),
    randomBytes,
  },
  { account: 'bench', name: 'Bench', url: 'https://example.com', email: 'bench@example.com' },
)

const ready: ApiServiceReady = {
  apiUrl: service.apiUrl,
  headers: { 'x-api-key': key, 'x-api-secret': secret },
}
// The query service looks for new keys twice a second.
while ((await fetch(`${ready.apiUrl}/stats`, { headers: ready.headers })).status === 401) await delay(500)
serveBench({
  ready,
  async answer({ log }: ServerRequest) {
    logger.level = log ? 'info' : 'warn'
    return {}
  },
  close: () => service.close(),
})
