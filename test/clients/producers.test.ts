/** The producers in Java and Python that the guide for producers shows: what they publish is what the projector reads, where it has to be. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { parseEventLine } from '../../contracts/events/ndjson.ts'
import { partitionOf } from '../../services/log/kafka/record.ts'
import { createDecoder } from '../../services/projector/ingest/decode.ts'
import { readRecords } from '../support/events/event-log-records.ts'
import { classPath, kafkaRequirement, newestKafka } from '../support/kafka/jars.ts'
import { describeKafka } from '../support/kafka/suite.ts'
import { makeTopics, settingsFor } from '../support/kafka/topics.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { outputOf, path, pythonEnvironment } from './programs.ts'

const python = pythonEnvironment('producer', path('producers/requirements.txt'))
const downloadMsMax = 360_000
const partitions = 6
const decode = createDecoder()

const golden = ['campaign', 'pledge', 'api-key'].flatMap(name =>
  (
    JSON.parse(readFileSync(path(`../../contracts/events/golden/${name}.json`), 'utf8')) as { line: string }[]
  ).map(({ line }) => line),
)
// Ids of all lengths modulo four, and with characters of one to four bytes.
const pledges = [
  ...Array.from({ length: 24 }, (_, n) => 'x'.repeat(n + 1)),
  'é',
  '日本',
  '🎈',
  'ключ',
  '\u{ffff}',
].map(pledge_id =>
  JSON.stringify({
    type: 'pledge',
    data: {
      ...{
        campaign_id: 'c_1',
        pledge_id,
        backer_id: 'b',
        version: 1,
        changed_at: '2026-09-02T19:04:11.007Z',
      },
      ...{ status: 'ACTIVE', amount_minor: 1, platform_amount_minor: 1 },
    },
  }),
)
const lines = [...golden, ...pledges]

const programs: readonly {
  name: string
  requirement: () => Promise<Requirement>
  command: () => string[]
}[] = [
  {
    name: 'Java',
    requirement: () => kafkaRequirement(newestKafka),
    command: () => [
      'java',
      '-cp',
      classPath(newestKafka),
      path('../../contracts/events/producers/Producer.java'),
    ],
  },
  {
    name: 'Python',
    requirement: python.requirement,
    command: () => [python.program('python'), path('../../contracts/events/producers/producer.py')],
  },
]

describeKafka('A producer', ({ address, openReader }) => {
  for (const { name, requirement, command } of programs) {
    let met: Requirement
    beforeAll(async () => {
      met = await requirement()
    }, downloadMsMax)

    test(`in ${name} publishes every golden example, so that the projector reads the same event, and skips blank lines`, async context => {
      needs(context, met)
      const settings = settingsFor(address())
      await makeTopics(settings, { partitions })
      const [program = '', ...args] = command()
      const stdin = `\n${lines.join('\n \t\n')}\n\n`
      await outputOf(program, [...args, address(), settings.topicPrefix], { stdin })

      const records = await readRecords(await openReader(settings), lines.length)
      const seen = records.map(record => ({ partition: record.partition, event: decode(record) }))
      const expected = lines.map(line => {
        const parsed = parseEventLine(line)
        if ('fault' in parsed) throw new Error(`${line} has a fault`)
        return { partition: partitionOf(Buffer.from(parsed.event.key), partitions), event: parsed.event }
      })
      expect(seen).toHaveLength(expected.length)
      expect(seen).toEqual(expect.arrayContaining(expected))
      expect(records.some(({ isMisplaced }) => isMisplaced)).toBe(false)
    }, 90_000)

    test(`in ${name} ends with the reason if the broker refuses a record`, async context => {
      needs(context, met)
      const settings = settingsFor(address())
      await makeTopics(settings, { partitions, config: { 'max.message.bytes': '100' } })
      const [program = '', ...args] = command()
      const refused = outputOf(program, [...args, address(), settings.topicPrefix], {
        stdin: `${lines[0]}\n`,
      })
      await expect(refused).rejects.toThrow(/records were refused, the first: .*campaigns/)
    }, 90_000)

    test(`in ${name} ends with an error at a type that has no topic`, async context => {
      needs(context, met)
      const [program = '', ...args] = command()
      const stdin = '{"type":"backer","data":{"backer_id":"b_1"}}\n'
      const failed = outputOf(program, [...args, address(), 'unknown.'], { stdin })
      await expect(failed).rejects.toThrow('the type backer is none of ')
    }, 90_000)
  }

  test('in Python delivers what came before a line that is no JSON', async context => {
    needs(context, await python.requirement())
    const settings = settingsFor(address())
    await makeTopics(settings, { partitions })
    const [program = '', ...args] = programs[1]?.command() ?? []
    const stdin = `${lines.join('\n')}\nno JSON\n`
    const failed = outputOf(program, [...args, address(), settings.topicPrefix], { stdin })
    await expect(failed).rejects.toThrow('JSONDecodeError')
    expect(await readRecords(await openReader(settings), lines.length)).toHaveLength(lines.length)
  }, 90_000)
})
