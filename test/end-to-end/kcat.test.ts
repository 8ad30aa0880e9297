/** kcat shares no code with us. Its default partitioner puts keys into other partitions, and the operator is told which. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { encodeState } from '../../contracts/events/codec.ts'
import type { StateEvent } from '../../contracts/events/event.ts'
import { topicName } from '../../services/log/kafka/client.ts'
import { partitionOf } from '../../services/log/kafka/record.ts'
import type { TablesStatus } from '../../services/projector/status.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import type { LocalServices } from '../support/deployment/local-services.ts'
import { makeDataDirectory, type ServiceProcess } from '../support/deployment/service-process.ts'
import { projectionStatus, untilDrained } from '../support/events/kickstarter.ts'
import { campaignEvent } from '../support/events/sample-events.ts'
import { kcat, kcatProgram } from '../support/kafka/kcat.ts'

const names = { topicPrefix: 'shop.' }
const directory = makeDataDirectory()

let services: LocalServices
let deployment: Deployment
let projector: ServiceProcess

describe('kcat', () => {
  useLocalDeployment({
    also: kcatProgram,
    settings: { PLEDGEVIEW_KAFKA_TOPIC_PREFIX: names.topicPrefix, PLEDGEVIEW_REJECT_SHARE_MAX: '1' },
    prepare: async local => {
      ;({ services, deployment } = local)
      projector = await deployment.startProjector()
    },
  })
  afterAll(() => directory.remove())

  test('a producer with the default partitioner of librdkafka is named in status, metrics and the log', async () => {
    const topic = topicName(names, 'campaigns')
    const ids = Array.from({ length: 9 }, (_, n) => `elsewhere${n}`)
    const file = join(directory.path, 'campaign')
    for (const campaign_id of ids) {
      writeFileSync(file, encodeState(campaignEvent({ campaign_id }) as StateEvent))
      await kcat([...address(topic), '-P', '-k', campaign_id, file])
    }
    const places = (await kcat([...address(topic), '-C', '-e', '-q', '-f', '%p %k\n'])).trim().split('\n')
    const wrong = places
      .map((line): [number, string] => [Number(line.split(' ')[0]), line.split(' ')[1] ?? ''])
      .filter(([partition, key]) => partition !== partitionOf(Buffer.from(key), 6))
    expect(wrong.length).toBeGreaterThan(3)

    // The deletion goes to the right partition, so compaction will keep these states for ever.
    const tombstone = `{"type":"campaign","key":"${wrong[0]?.[1]}","data":null}\n`
    expect((await deployment.command(['events', 'append', '-'], tombstone)).code).toBe(0)
    await untilDrained(projector)
    const metrics = await (await fetch(`${projector.opsUrl}/metrics`)).text()
    expect(metrics).toContain(`pledgeview_misplaced_records_total{topic="campaigns"} ${wrong.length}`)
    await projector.stop()
    expect(projector.output()).toContain('records are not in the partition of their key')
    for (const [partition, key] of wrong)
      expect(projector.output()).toContain(`campaigns/${partition} ${key}`)
    // Status still names them after a restart.
    projector = await deployment.startProjector()
    const { misplaced } = (await projectionStatus(projector)) as unknown as TablesStatus
    expect(misplaced).toMatchObject({ records: wrong.length, last_at: expect.any(String) })
    expect(misplaced.examples.toSorted()).toEqual(
      wrong.map(([partition, key]) => `campaigns/${partition} ${key}`).toSorted(),
    )
    const shown = await deployment.command(['status'])
    for (const example of misplaced.examples) expect(shown.stdout).toContain(example)
  })
})

function address(topic: string): string[] {
  return ['-b', services.addresses.kafka, '-t', topic]
}
