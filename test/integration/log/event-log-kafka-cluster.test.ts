/** The cluster itself: credentials, topics, outages, and what kafkajs makes of them. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type KafkaSasl, type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import { openKafkaHistory } from '../../../services/log/kafka/history.ts'
import { readCompaction } from '../../../services/log/kafka/topic-settings.ts'
import { createTopics, ensureTopics } from '../../../services/log/kafka/topics.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { generous, range, readDeliveries, readRecords } from '../../support/events/event-log-records.ts'
import { startsAt } from '../../support/events/starts.ts'
import { kafkaUser } from '../../support/kafka/broker.ts'
import {
  commitAll,
  describeKafkaBroker,
  groupOf,
  membership,
  numbered,
  numbersOf,
  until,
} from '../../support/kafka/suite.ts'
import { makeTopics, readTopic, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'

const never = new AbortController().signal

// A mistake of ours in kafkajs's decoder of answers.
const mistake = vi.hoisted(() => ({ isMade: false }))
vi.mock(import('../../../services/log/kafka/repairs/record-batches.ts'), async original => {
  const real = await original()
  return {
    ...real,
    createDecodeMessages() {
      const decode = real.createDecodeMessages()
      return async answer => {
        if (mistake.isMade) throw new TypeError('a mistake')
        return decode(answer)
      }
    },
  }
})
afterEach(() => {
  mistake.isMade = false
})

const mechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'] as const

describeKafkaBroker('the cluster', ({ broker, openReader, openWriter }) => {
  let settings: KafkaSettings

  beforeEach(() => {
    settings = settingsFor(broker().address)
  })

  describe('lets in', () => {
    test.each(mechanisms)('a user by %s, with and without TLS', async mechanism => {
      await makeTopics(settings)
      const sasl: KafkaSasl = { mechanism, ...kafkaUser }
      const overTls = {
        ...settings,
        brokers: [broker().tlsAddress],
        tls: { ca: broker().certificate.ca },
        sasl,
      }
      const writer = await openWriter({ ...settings, brokers: [broker().saslAddress], sasl })
      await writer.append(numbered(0, 10))
      expect(numbersOf(await readRecords(await openReader(overTls), 10))).toEqual(range(0, 10))
    })

    test('no client over TLS if the certificate is not trusted', async () => {
      const sasl: KafkaSasl = { mechanism: 'plain', ...kafkaUser }
      const untrusting = { ...settings, brokers: [broker().tlsAddress], tls: {}, sasl, retriesMax: 1 }
      await expect(openWriter(untrusting)).rejects.toThrow(/self-signed certificate/)
    })
  })

  describe('has topics', () => {
    const wanted = {
      ...readConfig({}),
      PLEDGEVIEW_KAFKA_PARTITIONS: 2,
      PLEDGEVIEW_KAFKA_REPLICATION: 1,
      PLEDGEVIEW_KAFKA_COMPACTION_LAG_MS: 3_600_000,
      PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS: 604_800_000,
    }
    const names = ['campaigns', 'pledges', 'api-keys', 'accounts', 'notices']

    test('that are made once, compacted within a bound', async () => {
      const first = await ensureTopics(settings, wanted, { create: true, logger: silent })
      expect(first).toEqual(names.map(name => `${settings.topicPrefix}${name}`))
      expect(await ensureTopics(settings, wanted, { create: true, logger: silent })).toEqual([])
      expect(await ensureTopics(settings, wanted, { create: false, logger: silent })).toEqual([])
      const compaction = await withAdmin(settings, admin => readCompaction({ admin, names: settings }))
      expect(compaction.map(topic => topic.compactionLagMs)).toEqual(Array(5).fill(3_600_000))
      const writer = await openWriter(settings)
      await writer.append(numbered(0, 10))
      await expect(
        writer.append([{ topic: 'pledges', key: null, value: Buffer.from('x') }]),
      ).rejects.toThrow()
      expect(numbersOf(await readRecords(await openReader(settings), 10))).toEqual(range(0, 10))
    })

    test('whose absence and whose differences are named, each of them', async () => {
      const { topicPrefix } = settings
      const policy = (value: string) => [{ name: 'cleanup.policy', value }]
      await withAdmin(settings, admin =>
        createTopics(admin, [
          { topic: `${topicPrefix}campaigns`, numPartitions: 3, configEntries: policy('compact') },
          { topic: `${topicPrefix}pledges`, numPartitions: 2, configEntries: policy('compact,delete') },
        ]),
      )
      const check = ensureTopics(
        settings,
        { ...wanted, PLEDGEVIEW_KAFKA_REPLICATION: 3 },
        { create: false, logger: silent },
      )
      const error = await check.catch(cause => cause)
      expect(error.message.replaceAll(topicPrefix, '').split('\n')).toEqual([
        'the topic api-keys is missing',
        'the topic accounts is missing',
        'the topic notices is missing',
        'the topic campaigns has partitions 3 instead of 2',
        'the topic campaigns has replicas 1 instead of 3',
        'the topic pledges has replicas 1 instead of 3',
        'the topic pledges has cleanup.policy compact,delete instead of compact',
      ])
    })
  })

  describe('may go away', () => {
    beforeEach(() => makeTopics(settings))

    test('and come back, killed: nothing that was confirmed is lost, all go on, and the requests of a rebuild wait', async () => {
      // By default it gives up after about 20 s, and a busy machine may need longer to start the broker.
      const writer = await openWriter({ ...settings, retriesMax: 40 })
      const reader = await openReader(settings)
      await writer.append(numbered(0, 100))
      await commitAll(reader, await readDeliveries(reader, 100))
      const own = { ...settings, ...groupOf(settings), ...membership, retriesMax: 1 }
      const history = await openKafkaHistory(own, { logger: silent })
      onTestFinished(() => history.close())
      const replay = await history.open('replay', startsAt({}))
      onTestFinished(() => replay.close())
      await broker().halt()
      const asked = Promise.all([replay.lag(), history.ends()])
      // If one fails too soon, that is reported below.
      asked.catch(() => undefined)
      const appended = writer.append(numbered(100, 100))
      await broker().resume()
      const [lag, ends] = await asked
      await appended
      // The reader may have to join again. What it had committed does not come again; what it reads now may come twice.
      const numbers = new Set<number>()
      while (numbers.size < 100)
        for (const number of numbersOf(await readRecords(reader, 1))) numbers.add(number)
      expect([...numbers].toSorted((a, b) => a - b)).toEqual(range(100, 200))
      const places = (of: readonly { topic: string; partition: number }[]) =>
        of.map(({ topic, partition }) => `${topic}/${partition}`).toSorted()
      expect(places(lag)).toEqual(places(ends))
      // What is appended meanwhile may be in the log by then.
      expect(ends.reduce((sum, { next }) => sum + next, 0)).toBeGreaterThanOrEqual(100)
    })

    test('for longer than a reader waits, which then says so', async () => {
      const { address, proxy } = broker().proxied
      const impatient = { ...settings, brokers: [address], outageMsMax: 5_000, retriesMax: 1 }
      // On a busy machine an opening may take longer than that.
      const reader = await vi.waitFor(() => openReader(impatient), 60_000)
      proxy.cut()
      try {
        const polling = async () => {
          for (;;) await reader.poll({ ...generous, waitMsMax: 200 }, never)
        }
        await expect(polling()).rejects.toThrow(/the Kafka c(luster has been away|onsumer stopped)/)
        expect(reader.leads()).toBe(false)
      } finally {
        proxy.release()
      }
    })

    test('with an answer on its way and stay away: what the writer sends after that is not taken for a repetition', async () => {
      const { address, proxy } = broker().proxied
      const writer = await openWriter({ ...settings, brokers: [address], retriesMax: 1 })
      await writer.append(numbered(0, 10))
      proxy.holdAnswers()
      const lost = writer.append(numbered(10, 10))
      const failure = expect(lost).rejects.toThrow()
      await until(async () => (await written()) === 20)
      proxy.cut()
      await failure
      proxy.release()
      await writer.append(numbered(20, 10))
      const messages = await readTopic(settings, topicName(settings, 'pledges'))
      const numbers = messages.map(({ value }) => Number(value?.toString())).toSorted((a, b) => a - b)
      expect(numbers).toEqual(range(0, 30))
    })

    async function written(): Promise<number> {
      const topic = topicName(settings, 'pledges')
      const ranges = await withAdmin(settings, admin => admin.fetchTopicOffsets(topic))
      return ranges.reduce((sum, { high }) => sum + Number(high), 0)
    }
  })

  describe('is read by a kafkajs', () => {
    test('that does not wake up for nothing', async () => {
      const warnings: string[] = []
      const onWarning = ({ name }: Error) => warnings.push(name)
      process.on('warning', onWarning)
      const armed: number[] = []
      const { setTimeout: setTimer } = globalThis
      globalThis.setTimeout = ((...args: Parameters<typeof setTimer>) => {
        armed.push(Number(args[1]))
        return setTimer(...args)
      }) as typeof setTimer
      try {
        await makeTopics(settings)
        const reader = await openReader({ ...settings, heartbeatMs: 50 })
        for (let turn = 0; turn < 10; turn++) await reader.poll({ ...generous, waitMsMax: 50 }, never)
        expect(armed.filter(ms => ms < 0)).toEqual([])
        expect(warnings).not.toContain('TimeoutNegativeWarning')
      } finally {
        globalThis.setTimeout = setTimer
        process.off('warning', onWarning)
      }
    })

    test('whose crash ends the reader', async () => {
      await makeTopics(settings, { partitions: 1 })
      const writer = await openWriter(settings)
      const reader = await openReader({ ...settings, retriesMax: 1 })
      mistake.isMade = true
      // Only now, so that no earlier fetch has it.
      await writer.append(numbered(0, 1))
      const polling = async () => {
        for (;;) await reader.poll({ ...generous, waitMsMax: 200 }, never)
      }
      await expect(polling()).rejects.toThrow(/the Kafka consumer stopped/)
      await expect(reader.commit('any', [])).rejects.toThrow(/the Kafka consumer stopped/)
    })
  })
})
