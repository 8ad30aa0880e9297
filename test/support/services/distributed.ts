/** All services of the distributed form, from any source, under names that no other test uses. */
import { randomBytes } from 'node:crypto'
import { afterAll } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse.ts'
import { settingsFor as tableSettingsFor } from '../clickhouse.ts'
import type { Addresses } from '../deployment.ts'
import { removeTopics } from '../kafka/topics.ts'
import { clickHouseService } from './clickhouse.ts'
import { kafkaService } from './kafka.ts'
import { redisService } from './redis.ts'
import { schemaRegistryService } from './schema-registry.ts'
import { useService } from './test-service.ts'

/** The arguments of `deploy`. */
export interface DistributedServices {
  addresses: Addresses
  settings: Readonly<Record<string, string>>
}

/** Opens all four as `useService` does. What was created under the settings' names is removed after the tests. */
export function useDistributedServices(): () => DistributedServices {
  const kafka = useService(kafkaService)
  const clickHouse = useService(clickHouseService)
  const redis = useService(redisService)
  const registry = useService(schemaRegistryService)
  const name = `test_${randomBytes(6).toString('hex')}`
  const topicPrefix = `${name}.`
  const databases = { PLEDGEVIEW_DATABASE: `${name}_model`, PLEDGEVIEW_VIEWS_DATABASE: `${name}_views` }
  let isUsed = false

  // Before the services are closed, because such hooks run in reverse order.
  afterAll(async () => {
    if (!isUsed) return
    const tables = openTables(tableSettingsFor(clickHouse()))
    for (const database of Object.values(databases)) {
      await tables.run({ query: `DROP DATABASE IF EXISTS ${database}` })
    }
    await tables.close()
    await removeTopics({ brokers: [kafka().address], clientId: 'pledgeview-test', topicPrefix })
  })

  return () => {
    isUsed = true
    return {
      addresses: {
        kafka: kafka().address,
        clickHouse: clickHouse(),
        redis: redis().url,
        schemaRegistry: registry().url,
      },
      settings: {
        ...databases,
        PLEDGEVIEW_KAFKA_TOPIC_PREFIX: topicPrefix,
        PLEDGEVIEW_KAFKA_GROUP: name,
        PLEDGEVIEW_REDIS_PREFIX: `${name}:`,
      },
    }
  }
}
