/** Whether Redis and the schema registry answer, where they are configured. `status` reads nothing from them. */
import { registrySettings } from '../../distributed/settings.ts'
import { createRegistryRequest } from '../../log/registry/http.ts'
import { closing } from '../../runtime/async/closing.ts'
import type { Config } from '../../runtime/config.ts'
import { answered, type Check } from '../../runtime/ops/checks.ts'
import { createLogger } from '../../runtime/ops/logger.ts'
import { createRedisConnection } from '../../runtime/redis/connection.ts'

const answerMsMax = 10_000

export interface Neighbours {
  redis: Check | null
  registry: Check | null
}

export async function neighboursOf(config: Config): Promise<Neighbours> {
  const { PLEDGEVIEW_REDIS_URL: redisUrl } = config
  const registry = registrySettings(config)
  const [ofRedis, ofRegistry] = await Promise.all([
    redisUrl === undefined ? null : redisCheck(redisUrl),
    registry && answered(() => registryCheck(registry), answerMsMax),
  ])
  return { redis: ofRedis, registry: ofRegistry ?? null }
}

function redisCheck(url: string): Promise<Check> {
  const time = { now: () => performance.now(), random: Math.random, logger: createLogger('error') }
  return closing(open => {
    const connection = open(
      createRedisConnection({ url, name: 'pledgeview-status', deadlineMs: answerMsMax }, time),
    )
    return answered(() => new Promise(resolve => connection.onUp(() => resolve(answers))), answerMsMax)
  })
}

const answers = { ok: true, detail: 'answers' }

/** Any answer will do. If it is a wrong one, the projectors say so. */
async function registryCheck(settings: NonNullable<ReturnType<typeof registrySettings>>): Promise<Check> {
  await createRegistryRequest(settings, answerMsMax)('/schemas/ids/1')
  return answers
}
