/**
 * Ingest from Kafka: how fast one projector process writes a whole history to the ledger, compared with the same consumer that
 * only decodes (each event in full, with avsc). And the same history as JSON, to compare it with Avro.
 */
import { topics } from '../../../contracts/events/event.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { runBenchProcess } from '../bench-process.ts'
import { cpuSecondsOf, memoryOf } from '../process-usage.ts'
import { type BenchReport, type Figure, figureOf } from '../report.ts'
import { ratioOfPairs, summarize } from '../samples.ts'
import type { Workspace } from '../workspace.ts'
import { groupDrained, recordCount, until } from './group.ts'
import { type AppendedHistory, appendHistory } from './history.ts'
import type { CeilingInput, CeilingResult } from './ingest-ceiling.ts'
import { dropDatabases, type KafkaServices, pidOf, startProjector, withKafkaServices } from './services.ts'

// About a million events.
const campaigns = 3_500
const rounds = 3
const runMsMax = 300_000
const prefixes = { avro: 'ingest.', json: 'ingest-json.' } as const
type Form = keyof typeof prefixes

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
  /** Peak resident memory of the projector. Everything was in the log before it started. */
  peakBytes: number
}

interface Runs {
  ceiling: Run[]
  projector: ProjectorRun[]
  ofJson: ProjectorRun[]
}

interface Topics {
  environment: Readonly<Record<string, string>>
  records: number
}

export async function benchKafkaIngest(workspace: Workspace): Promise<BenchReport> {
  const options = { withSchemaRegistry: true }
  return withKafkaServices(workspace, options, async services => {
    const { environment, history } = await append(services, 'avro')
    await append(services, 'json')
    const records = history.events
    const runs: Runs = { ceiling: [], projector: [], ofJson: [] }
    for (let round = 1; round <= rounds; round++) {
      runs.ceiling.push(await runCeiling({ environment, records }, round))
      runs.projector.push(await runProjector(services, 'avro', records, round))
      runs.ofJson.push(await runProjector(services, 'json', records, round))
    }
    return report(history, runs)
  })
}

async function append(services: KafkaServices, form: Form) {
  const settings = { PLEDGEVIEW_KAFKA_TOPIC_PREFIX: prefixes[form] }
  const { environment } = await services.deploy(`prepare_${form}`, settings)
  const history = await appendHistory(readConfig(environment), campaigns, form)
  const records = await recordCount(services.admin, topicNames(form))
  if (records !== history.events) throw new Error(`the topics hold ${records} of ${history.events} records`)
  return { environment, history }
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
  form: Form,
  records: number,
  round: number,
): Promise<ProjectorRun> {
  const { admin, tables, clickHousePid } = services
  const name = `projector_${form}_${round}`
  const deployment = await services.deploy(name, { PLEDGEVIEW_KAFKA_TOPIC_PREFIX: prefixes[form] })
  const projector = await startProjector(deployment)
  const pid = pidOf(projector)
  const startedAt = Date.now()
  const [cpuBefore, clickHouseCpuBefore] = [cpuSecondsOf(pid), cpuSecondsOf(clickHousePid)]
  await groupDrained(admin, name, topicNames(form), records)
  const seconds = (Date.now() - startedAt) / 1000
  const cpuSeconds = cpuSecondsOf(pid) - cpuBefore
  const clickHouseCpuSeconds = cpuSecondsOf(clickHousePid) - clickHouseCpuBefore
  const foldedAt = await lastFold(services, name)
  const { peakBytes } = memoryOf(pid)
  await projector.stop()
  await dropDatabases(tables, [`${name}_views`, name, `${name}_ledger_1`, `${name}_read_1`])
  const foldedSeconds = (foldedAt - startedAt) / 1000
  return { seconds, cpuSeconds, clickHouseCpuSeconds, foldedSeconds, peakBytes }
}

/** When the fold that covers every batch finished, ms since the epoch. */
async function lastFold({ tables }: KafkaServices, base: string): Promise<number> {
  let foldedAt = 0
  await until('everything is folded', async () => {
    const [row] = await tables.rows<{ written: number; folded: number; at: number }>({
      query: `SELECT
          (SELECT max(sequence) FROM ${base}_ledger_1.batch_log) AS written,
          max(sequence) AS folded,
          toUnixTimestamp64Milli(max(written_at)) AS at
        FROM ${base}_ledger_1.fold_progress WHERE is_folded`,
    })
    foldedAt = row?.at ?? 0
    return row !== undefined && row.folded >= row.written
  })
  return foldedAt
}

function topicNames(form: Form): string[] {
  return topics.map(topic => prefixes[form] + topic)
}

function report(history: AppendedHistory, runs: Runs): BenchReport {
  return {
    bench: 'kafka-ingest',
    notes: [
      `${history.events} events of the demo platform of ${campaigns} campaigns, Avro with a schema registry, LZ4, 6 partitions,`,
      `${rounds} alternating rounds, until the offsets are committed: the same consumer only decoding, one projector process, and one on the`,
      'same events as JSON.',
      'Broker, ClickHouse and consumer share the machine.',
    ],
    figures: figures(history, runs),
  }
}

function figures({ events, appendSeconds }: AppendedHistory, { ceiling, projector, ofJson }: Runs): Figure[] {
  const rates = (runs: readonly Run[]) => runs.map(({ seconds }) => events / seconds)
  const costs = (runs: readonly Run[]) => runs.map(({ cpuSeconds }) => (cpuSeconds * 1e6) / events)
  const clickHouseCosts = projector.map(run => (run.clickHouseCpuSeconds * 1e6) / events)
  const foldedRates = projector.map(({ foldedSeconds }) => events / foldedSeconds)
  return [
    { name: 'append', value: events / appendSeconds, unit: 'events/s' },
    figureOf('ceiling, only decoding', 'events/s', summarize(rates(ceiling))),
    figureOf('projector', 'events/s', summarize(rates(projector))),
    figureOf('projector, until folded', 'events/s', summarize(foldedRates)),
    figureOf('projector / ceiling', '', ratioOfPairs(rates(projector), rates(ceiling))),
    // Other work on the machine takes wall time, but hardly changes CPU time. On a busy machine these figures say more.
    figureOf('projector / ceiling, by CPU', '', ratioOfPairs(costs(ceiling), costs(projector))),
    figureOf('ceiling, CPU an event', 'us', summarize(costs(ceiling))),
    figureOf('projector, CPU an event', 'us', summarize(costs(projector))),
    figureOf('JSON beside Avro: projector', 'events/s', summarize(rates(ofJson))),
    figureOf('JSON beside Avro: projector, CPU an event', 'us', summarize(costs(ofJson))),
    figureOf('projector, peak memory', 'MB', summarize(projector.map(({ peakBytes }) => peakBytes / 1e6))),
    figureOf('ClickHouse beside it, CPU an event', 'us', summarize(clickHouseCosts)),
  ]
}
