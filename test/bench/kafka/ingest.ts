/**
 * Ingest from Kafka: how fast one projector process writes a whole history to the ledger, compared with the same consumer that
 * only decodes (each event in full, with avsc), and with ClickHouse's Kafka engine on the same topics.
 */

import { isDeepStrictEqual } from 'node:util'
import { topics } from '../../../contracts/events/event.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { generationOf } from '../../../services/tables/generations.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { runBenchProcess } from '../bench-process.ts'
import { cpuSecondsOf } from '../process-usage.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { ratioOfPairs, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { engineGroup, engineTopics, startEngine } from './engine.ts'
import { groupDrained, groupFormed, recordCount, until } from './group.ts'
import { type AppendedHistory, appendHistory } from './history.ts'
import type { CeilingInput, CeilingResult } from './ingest-ceiling.ts'
import { loadNote } from './load-note.ts'
import { dropDatabases, type KafkaServices, pidOf, startProjector, withKafkaServices } from './services.ts'

// About a million events.
const campaigns = 3_500
const rounds = 3
const runMsMax = 300_000
const prefix = 'ingest.'

/** One run of any consumer of the topics. */
interface Run {
  seconds: number
  /** CPU time of the process that consumes. */
  cpuSeconds: number
}

interface ProjectorRun extends Run {
  /** From the start to the last fold. */
  foldedSeconds: number
  clickHouseCpuSeconds: number
}

/** A run that fills a ledger, and a digest of its content. */
interface Filled<R> {
  run: R
  ledger: object
}

interface Runs {
  ceiling: Run[]
  projector: ProjectorRun[]
  engine: Run[]
}

interface Topics {
  environment: Readonly<Record<string, string>>
  records: number
}

export async function benchKafkaIngest(workspace: Workspace): Promise<BenchReport> {
  const options = { withSchemaRegistry: true, mayClickHouseConnect: true }
  return withKafkaServices(workspace, options, async services => {
    const { environment } = await services.deploy('prepare', { PLEDGEVIEW_KAFKA_TOPIC_PREFIX: prefix })
    const history = await appendHistory(readConfig(environment), campaigns)
    const records = await recordCount(services.admin, topicNames())
    if (records !== history.events) throw new Error(`the topics hold ${records} of ${history.events} records`)
    const runs: Runs = { ceiling: [], projector: [], engine: [] }
    for (let round = 1; round <= rounds; round++) {
      runs.ceiling.push(await runCeiling({ environment, records }, round))
      const ours = await runProjector(services, records, round)
      const theirs = await runEngine(services, round)
      if (!isDeepStrictEqual(ours.ledger, theirs.ledger)) {
        throw new Error(`the ledgers differ: ${JSON.stringify([ours.ledger, theirs.ledger])}`)
      }
      runs.projector.push(ours.run)
      runs.engine.push(theirs.run)
    }
    return report(history, runs)
  })
}

async function runCeiling({ environment, records }: Topics, round: number): Promise<Run> {
  const input: CeilingInput = { environment, records, groupId: `ceiling-${round}` }
  // With the flags of `pledgeview projector`: none.
  return runBenchProcess<CeilingResult>({
    script: 'kafka/ingest-ceiling.ts',
    input,
    msMax: runMsMax,
    flags: [],
  })
}

/** From the moment the projector has its partitions until it has committed the last record. */
async function runProjector(
  services: KafkaServices,
  records: number,
  round: number,
): Promise<Filled<ProjectorRun>> {
  const { admin, tables, clickHousePid } = services
  const name = `projector_${round}`
  const deployment = await services.deploy(name, { PLEDGEVIEW_KAFKA_TOPIC_PREFIX: prefix })
  const projector = await startProjector(deployment)
  const pid = pidOf(projector)
  const startedAt = Date.now()
  const [cpuBefore, clickHouseCpuBefore] = [cpuSecondsOf(pid), cpuSecondsOf(clickHousePid)]
  await groupDrained(admin, name, topicNames(), records)
  const seconds = (Date.now() - startedAt) / 1000
  const cpuSeconds = cpuSecondsOf(pid) - cpuBefore
  const clickHouseCpuSeconds = cpuSecondsOf(clickHousePid) - clickHouseCpuBefore
  const foldedAt = await lastFold(services, name)
  await projector.stop()
  const ledger = await ledgerSums(tables, name)
  await dropDatabases(tables, [`${name}_views`, name])
  const foldedSeconds = (foldedAt - startedAt) / 1000
  return { run: { seconds, cpuSeconds, clickHouseCpuSeconds, foldedSeconds }, ledger }
}

/** When the fold that covers every batch finished, ms since the epoch. */
async function lastFold({ tables }: KafkaServices, ledger: string): Promise<number> {
  let foldedAt = 0
  await until('everything is folded', async () => {
    const [row] = await tables.rows<{ written: number; folded: number; at: number }>({
      query: `SELECT
          (SELECT max(sequence) FROM ${ledger}.batch_log) AS written,
          max(sequence) AS folded,
          toUnixTimestamp64Milli(max(written_at)) AS at
        FROM ${ledger}.fold_progress WHERE is_folded`,
    })
    foldedAt = row?.at ?? 0
    return row !== undefined && row.folded >= row.written
  })
  return foldedAt
}

/** From the moment the engine's consumers have their partitions until they have committed the last record. */
async function runEngine(services: KafkaServices, round: number): Promise<Filled<Run>> {
  const { admin, tables, clickHousePid, brokers, schemaRegistryUrl } = services
  const groupId = `engine_${round}`
  const databases = generationOf({ base: groupId, views: `${groupId}_views` }, 1)
  const cpuBefore = cpuSecondsOf(clickHousePid)
  await startEngine({ tables, databases, brokers, schemaRegistryUrl, topicPrefix: prefix, groupId })
  await Promise.all(engineTopics.map(topic => groupFormed(admin, engineGroup(groupId, topic))))
  const startedMs = performance.now()
  await Promise.all(
    engineTopics.map(async topic => {
      const names = [prefix + topic]
      await groupDrained(admin, engineGroup(groupId, topic), names, await recordCount(admin, names))
    }),
  )
  const seconds = (performance.now() - startedMs) / 1000
  const cpuSeconds = cpuSecondsOf(clickHousePid) - cpuBefore
  const ledger = await ledgerSums(tables, databases.ledger)
  await dropDatabases(tables, [databases.views, databases.ledger])
  return { run: { seconds, cpuSeconds }, ledger }
}

/** What two ledgers of the same history must have in common. */
async function ledgerSums(tables: Tables, ledger: string): Promise<object> {
  const [sums] = await tables.rows<object>({
    query: `SELECT
        (SELECT (count(), sum(is_public), sum(goal_amount_minor), sum(length(rewards)), sum(currency_digits))
          FROM ${ledger}.campaign_ledger FINAL) AS campaigns,
        (SELECT (count(), sum(counts), sum(amount_minor), uniqExact(backer_hash), countIf(reward_id != ''))
          FROM ${ledger}.pledge_ledger FINAL) AS pledges`,
  })
  return sums ?? {}
}

function topicNames(): string[] {
  return topics.map(topic => prefix + topic)
}

function report(history: AppendedHistory, runs: Runs): BenchReport {
  return {
    bench: 'kafka-ingest',
    notes: [
      `${history.events} events of the demo platform of ${campaigns} campaigns, Avro with a schema registry, LZ4, 6 partitions,`,
      `${rounds} alternating rounds, until the offsets are committed: the same consumer only decoding, one projector process, and`,
      "ClickHouse's Kafka engine (AvroConfluent, one consumer per topic) with materialized views into a ledger with the same",
      'tables. The engine runs inside ClickHouse and does not check rules, keep rejects, handle tombstones and API keys,',
      'write the batch log or fold. Broker, ClickHouse and consumer share the machine.',
      loadNote(),
    ],
    figures: figures(history, runs),
  }
}

function figures({ events, appendSeconds }: AppendedHistory, { ceiling, projector, engine }: Runs): Figure[] {
  const rates = (runs: readonly Run[]) => runs.map(({ seconds }) => events / seconds)
  const costs = (runs: readonly Run[]) => runs.map(({ cpuSeconds }) => (cpuSeconds * 1e6) / events)
  const clickHouseCosts = projector.map(run => (run.clickHouseCpuSeconds * 1e6) / events)
  const wholeCosts = costs(projector).map((cost, index) => cost + (clickHouseCosts[index] ?? 0))
  const foldedRates = projector.map(({ foldedSeconds }) => events / foldedSeconds)
  return [
    { name: 'append', value: events / appendSeconds, unit: 'events/s' },
    figureOf('ceiling, only decoding', 'events/s', summarize(rates(ceiling))),
    figureOf('projector', 'events/s', summarize(rates(projector))),
    figureOf('projector, until folded', 'events/s', summarize(foldedRates)),
    figureOf('Kafka engine', 'events/s', summarize(rates(engine))),
    figureOf('projector / ceiling', '', ratioOfPairs(rates(projector), rates(ceiling))),
    figureOf('projector / Kafka engine', '', ratioOfPairs(rates(projector), rates(engine))),
    // Other work on the machine takes wall time, but hardly changes CPU time. On a busy machine these figures say more.
    figureOf('projector / ceiling, by CPU', '', ratioOfPairs(costs(ceiling), costs(projector))),
    figureOf('projector and ClickHouse / Kafka engine, by CPU', '', ratioOfPairs(costs(engine), wholeCosts)),
    figureOf('ceiling, CPU an event', 'us', summarize(costs(ceiling))),
    figureOf('projector, CPU an event', 'us', summarize(costs(projector))),
    figureOf('ClickHouse beside it, CPU an event', 'us', summarize(clickHouseCosts)),
    figureOf('Kafka engine in ClickHouse, CPU an event', 'us', summarize(costs(engine))),
  ]
}
