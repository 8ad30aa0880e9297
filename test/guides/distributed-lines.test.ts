/**
 * Runs the guides' lines for the distributed form, on a separate Kafka, ClickHouse server, Redis and schema registry. The
 * operators' lines come first: they create topics and tables, and start the processes.
 *
 * The program itself uses the fixed schema ids here, as without a registry.
 */

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest'
import { freePort } from '../../services/runtime/free-port.ts'
import {
  type LocalServices,
  localServices,
  startLocalServices,
} from '../support/deployment/local-services.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { blocksOf, nameOf } from './blocks.ts'
import { openReader, programsOf, type Reader } from './reader.ts'

const blockMsMax = 240_000
const startMsMax = 600_000
let requirement: Requirement
let services: LocalServices | undefined
let reader: Reader | undefined

beforeAll(async () => {
  requirement = await localServices({ withSchemaRegistry: true })
  if (!requirement.isMet) return
  services = await startLocalServices({ withSchemaRegistry: true })
  const { kafka, clickHouse, redis, schemaRegistry = '' } = services.addresses
  const secret = () => randomBytes(32).toString('hex')
  reader = openReader({
    ports: { 9094: portOf(`http://${kafka}`), 8082: portOf(schemaRegistry) },
    environment: {
      PLEDGEVIEW_KAFKA_BROKERS: kafka,
      PLEDGEVIEW_CLICKHOUSE_URL: clickHouse.url,
      PLEDGEVIEW_CLICKHOUSE_USER: clickHouse.user,
      PLEDGEVIEW_CLICKHOUSE_PASSWORD: clickHouse.password,
      PLEDGEVIEW_REDIS_URL: redis,
      PLEDGEVIEW_KEY_PEPPER: secret(),
      PLEDGEVIEW_BACKER_KEY: secret(),
      PLEDGEVIEW_PORT: String(await freePort()),
      PLEDGEVIEW_OPS_PORT: '0',
    },
  })
}, startMsMax)

beforeEach(context => needs(context, requirement))

afterAll(async () => {
  await reader?.close()
  await services?.stop()
}, startMsMax)

describe.each(['deploy/deploy.md', 'contracts/events/README.md'])(
  'the distributed lines of %s work on Kafka, and print what it shows',
  guide => {
    const blocks = blocksOf(guide).filter(({ isDistributed, how }) => isDistributed && how.kind !== 'not run')

    test.for(blocks.map(block => ({ name: nameOf(block), block })))(
      '$name',
      { timeout: blockMsMax },
      async ({ block }, context) => {
        needs(context, programsOf(block))
        // They keep running, because the following blocks need them.
        if (block.how.kind === 'background') await reader?.start(block.text, block.how.sign)
        else await reader?.paste(block)
      },
    )
  },
)

function portOf(url: string): number {
  return Number(new URL(url).port)
}
