/**
 * The log as others see it: kcat, a Kafka client that nobody here wrote, reads what `events append` wrote, and writes what
 * the projector refuses.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { encodeState, schemaIds } from '../../contracts/events/codec.ts'
import { changeTopics, type StateEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { topicName } from '../../services/log/kafka/client.ts'
import { partitionOf } from '../../services/log/kafka/partition.ts'
import type { TablesStatus } from '../../services/projector/status.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import { makeDataDirectory, type ServiceProcess } from '../support/deployment/service-process.ts'
import type { LocalServices } from '../support/deployment/stack.ts'
import { projectionStatus, untilDrained } from '../support/events/kickstarter.ts'
import { campaignEvent, pledgeEvent, pledgeTombstone } from '../support/events/sample-events.ts'
import { kcat, kcatBytes, kcatProgram } from '../support/kafka/kcat.ts'

const names = { topicPrefix: 'shop.' }
const directory = makeDataDirectory()

/** A message as kcat prints it; its bytes are hex, and what is null is null. */
interface Seen {
  key: string | null
  value: string | null
  headers: string[]
}

interface Golden {
  topic: (typeof changeTopics)[number]
  key: string
  line: string
  value_hex: string
}

const currentIds = new Set(Object.values(schemaIds))
// Those of an earlier schema id are not what `events append` writes.
const golden = ['campaign', 'pledge', 'api-key']
  .flatMap(
    name =>
      JSON.parse(
        readFileSync(new URL(`../../contracts/events/golden/${name}.json`, import.meta.url), 'utf8'),
      ) as Golden[],
  )
  .filter(({ value_hex: hex }) => hex === null || currentIds.has(Number.parseInt(hex.slice(2, 10), 16)))
const pledgeEvents = Array.from({ length: 5_000 }, (_, n) =>
  pledgeEvent({ campaign_id: `c${n % 50}`, pledge_id: `p${n}` }),
)

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

  test('reads every event that was appended once, under its key, framed and encoded as the contract says', async () => {
    const events = [
      campaignEvent({ campaign_id: 'c0' }),
      ...pledgeEvents,
      pledgeTombstone('c0', 'p0'),
      pledgeTombstone('c0', 'never seen'),
    ]
    const lines = [...golden.map(({ line }) => line), ...events.map(formatEvent)]
    const { code, stdout, stderr } = await deployment.command(
      ['events', 'append', '-', '--json'],
      `${lines.join('\n')}\n`,
    )
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ appended: lines.length })

    const expected = {
      campaigns: messagesOf('campaigns', events.slice(0, 1)),
      pledges: messagesOf('pledges', events.slice(1)),
      'api-keys': messagesOf('api-keys', []),
    }
    const framing = { campaigns: '0000000001', pledges: '0000000002', 'api-keys': '0000000005' }
    for (const topic of changeTopics) {
      const seen = await messagesIn(topicName(names, topic))
      expect(seen.map(inOneLine).sort()).toEqual(expected[topic].map(inOneLine).sort())
      for (const { value } of seen) if (value !== null) expect(value.slice(0, 10)).toBe(framing[topic])
    }
  })

  test('writes what is refused: it is kept with its key, bytes and headers, where it stood, and why', async () => {
    const topic = topicName(names, 'pledges')
    const [first] = golden.filter(message => message.topic === 'pledges')
    const poison = [
      { key: 'c1/p1', bytes: Buffer.from([9, 8, 10, 0, 255]), reason: 'the first byte is 9, not 0' },
      {
        key: 'c1/p2',
        bytes: Buffer.from([0, 0, 0, 3, 231, 1]),
        reason: 'schema id 999 is unknown for a pledge',
      },
      { key: 'c1/p3', bytes: Buffer.from(first?.value_hex ?? '', 'hex'), reason: 'key ' },
    ]
    const given = ['-H', 'trace=a b', '-H', 'trace=c', '-H', 'source=shop']
    for (const { key, bytes } of poison) {
      const file = join(directory.path, 'value')
      writeFileSync(file, bytes)
      await kcat([...address(topic), '-P', '-p', '4', '-k', key, ...given, file])
    }
    await untilDrained(projector)
    expect((await projectionStatus(projector)).projector.rejects).toBe(poison.length)

    const { stdout } = await deployment.command(['rejects', 'list', '--json'])
    const { rejects } = JSON.parse(stdout) as { rejects: Record<string, unknown>[] }
    const places = rejects.map(({ topic, partition, offset }) => `${topic}/${partition}/${offset}`)
    expect(places).toHaveLength(poison.length)
    for (const [index, place] of places.toReversed().entries()) {
      const shown = JSON.parse((await deployment.command(['rejects', 'show', place, '--json'])).stdout)
      const { key, bytes, reason } = poison[index] ?? {}
      expect(shown).toMatchObject({
        ...{ topic: 'pledges', partition: 4, key_text: key, reason: expect.stringContaining(reason ?? '') },
        value_base64: bytes?.toString('base64'),
        headers: ['trace=a b', 'trace=c', 'source=shop'].map(header => {
          const [name, text = ''] = header.split('=')
          return { name, value_base64: Buffer.from(text).toString('base64') }
        }),
      })
      expect(Date.parse(shown.appended_at)).toBeGreaterThan(Date.now() - 600_000)
    }
  })

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

function messagesOf(topic: Golden['topic'], events: readonly ReturnType<typeof campaignEvent>[]): Seen[] {
  const fromGolden = golden
    .filter(message => message.topic === topic)
    .map(({ key, value_hex }) => ({ key, value: value_hex, headers: [] }))
  const fromEvents = events.map(event => ({
    key: event.key,
    value: event.data === null ? null : encodeState(event as StateEvent).toString('hex'),
    headers: [],
  }))
  return [...fromGolden, ...fromEvents]
}

function inOneLine({ key, value, headers }: Seen): string {
  return JSON.stringify([key, value, headers])
}

function address(topic: string): string[] {
  return ['-b', services.addresses.kafka, '-t', topic]
}

// A header's own text may hold commas.
const betweenHeaders = /,(?=[\w-]+=)/

/** All that a topic holds. Lengths stand before what they measure, so that any bytes can be told apart. */
async function messagesIn(topic: string): Promise<Seen[]> {
  const output = await kcatBytes([...address(topic), '-C', '-e', '-q', '-f', '%K %S %h\n%k%s'])
  const messages: Seen[] = []
  for (let at = 0; at < output.length; ) {
    const lineEnd = output.indexOf('\n', at)
    const [, keyLength, valueLength, headers = ''] =
      /^(-?\d+) (-?\d+) (.*)$/.exec(output.toString('utf8', at, lineEnd)) ?? []
    const take = (length: number) => {
      const bytes = output.subarray(at, at + Math.max(0, length))
      at += bytes.length
      return length < 0 ? null : bytes
    }
    at = lineEnd + 1
    const key = take(Number(keyLength))?.toString() ?? null
    const value = take(Number(valueLength))?.toString('hex') ?? null
    messages.push({ key, value, headers: headers === '' ? [] : headers.split(betweenHeaders) })
  }
  return messages
}
