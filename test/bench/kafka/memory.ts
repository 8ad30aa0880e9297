/**
 * Memory of a projector under a backlog: whether it is bounded, and how much more it is than that of a projector without a
 * backlog.
 *
 * "Without a backlog" can mean three things, and each is measured: a projector that never got a record; one that keeps up
 * with a steady stream, so that it has done all of its work without lag; and one that drained a tenth of the backlog,
 * which shows whether memory grows with the backlog.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { topics } from '../../../contracts/events/event.ts'
import { databasesOf } from '../../../services/distributed.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { runBenchProcess, startBenchProcess } from '../bench-process.ts'
import { loadPlatform } from '../platform.ts'
import { memoryOf, type ProcessMemory } from '../process-usage.ts'
import type { BenchReport, Figure } from '../report.ts'
import type { Workspace } from '../workspace.ts'
import type { BacklogInput, BacklogResult } from './backlog.ts'
import { committedCount, groupDrained, recordCount } from './group.ts'
import { marksPerCampaign } from './marks.ts'
import { dropDatabases, type KafkaServices, pidOf, startProjector, withKafkaServices } from './services.ts'
import type { ProducerInput, ProducerRequest } from './steady-producer.ts'

const backlogPledges = 5_000_000
const smallBacklogPledges = backlogPledges / 10
const platform = { campaigns: 20_000, pledges: 100_000 }
const idleMs = 20_000
// Long and fast enough to allocate as much as the small backlog does. V8 collects garbage in proportion to allocations, so a
// stream of few events would be compared with a heap that has not grown yet.
const steady = { perSecond: 8_000, seconds: 60 }
const appendMsMax = 600_000
const toleratedGrowth = 1.2

interface Drained extends ProcessMemory {
  eventsPerSecond: number
}

interface KeptUp extends ProcessMemory {
  /** Records that were not committed yet when the producer had finished. */
  lag: number
}

export async function benchKafkaMemory(workspace: Workspace): Promise<BenchReport> {
  return withKafkaServices(workspace, {}, async services => {
    const idle = await ofIdle(services)
    const keepingUp = await ofSteadyStream(services)
    const small = await ofBacklog(services, 'small_backlog', smallBacklogPledges)
    const large = await ofBacklog(services, 'backlog', backlogPledges)
    return report({ idle, keepingUp, small, large })
  })
}

async function ofIdle(services: KafkaServices): Promise<ProcessMemory> {
  return withProjector(services, 'idle', async () => {
    await delay(idleMs)
  })
}

async function ofSteadyStream(services: KafkaServices): Promise<KeptUp> {
  const { perSecond, seconds } = steady
  const count = perSecond * seconds
  let lag = 0
  const memory = await withProjector(services, 'steady', async environment => {
    const campaigns = Array.from({ length: Math.ceil(count / marksPerCampaign) }, (_, number) => number)
    const input: ProducerInput = { environment, campaigns }
    const producer = await startBenchProcess({
      script: 'kafka/steady-producer.ts',
      input,
      msMax: appendMsMax,
    })
    try {
      const request: ProducerRequest = { first: 0, count, perSecond }
      await producer.ask(request)
      lag = count - (await committedCount(services.admin, 'steady', topicNames('steady')))
      await groupDrained(services.admin, 'steady', topicNames('steady'), count)
    } finally {
      await producer.end()
    }
  })
  return { ...memory, lag }
}

/** The backlog exists before the projector starts. */
async function ofBacklog(services: KafkaServices, name: string, pledges: number): Promise<Drained> {
  const { admin } = services
  const { environment } = await services.deploy(name)
  const input: BacklogInput = { environment, pledges, campaigns: platform.campaigns }
  await runBenchProcess<BacklogResult>({ script: 'kafka/backlog.ts', input, msMax: appendMsMax })
  const records = await recordCount(admin, topicNames(name))
  let seconds = 0
  const memory = await withProjector(services, name, async () => {
    const startedMs = performance.now()
    await groupDrained(admin, name, topicNames(name), records)
    seconds = (performance.now() - startedMs) / 1000
  })
  await admin.deleteTopics({ topics: topicNames(name) })
  return { ...memory, eventsPerSecond: records / seconds }
}

/** Memory of one projector after the work, on a platform that it can fold. */
async function withProjector(
  services: KafkaServices,
  name: string,
  work: (environment: Readonly<Record<string, string>>) => Promise<void>,
): Promise<ProcessMemory> {
  const deployment = await services.deploy(name)
  const databases = databasesOf(readConfig(deployment.environment))
  await loadPlatform(services.tables, databases, platform)
  const projector = await startProjector(deployment)
  await work(deployment.environment)
  const memory = memoryOf(pidOf(projector))
  await projector.stop()
  await dropDatabases(services.tables, [databases.views, databases.model])
  return memory
}

function topicNames(deployment: string): string[] {
  return topics.map(topic => `${deployment}.${topic}`)
}

interface Memories {
  idle: ProcessMemory
  keepingUp: KeptUp
  small: Drained
  large: Drained
}

function report(memories: Memories): BenchReport {
  const { perSecond, seconds } = steady
  return {
    bench: 'kafka-memory',
    notes: [
      `Resident memory of one projector process, measured in separate processes: one that got no record for ${idleMs / 1000} s; one that`,
      `kept up with ${perSecond} pledges/s for ${seconds} s; and the peak of two that drained backlogs of ${smallBacklogPledges} and of`,
      `${backlogPledges} small pledges, which were there before they started.`,
    ],
    figures: figures(memories),
  }
}

function figures({ idle, keepingUp, small, large }: Memories): Figure[] {
  const megabytes = (name: string, bytes: number): Figure => ({ name, value: bytes / 1e6, unit: 'MB' })
  const growth = (name: string, than: ProcessMemory): Figure => ({
    name: `peak under the backlog / ${name}`,
    value: large.peakBytes / than.peakBytes,
    unit: '',
    target: { atMost: toleratedGrowth },
  })
  return [
    megabytes('idle, never got a record, peak', idle.peakBytes),
    megabytes('keeping up with a steady stream, peak', keepingUp.peakBytes),
    { name: 'keeping up, lag when the stream ended', value: keepingUp.lag, unit: 'records' },
    megabytes('a tenth of the backlog, peak', small.peakBytes),
    megabytes('the backlog, peak', large.peakBytes),
    megabytes('the backlog, at its end', large.residentBytes),
    growth('idle', idle),
    growth('keeping up', keepingUp),
    growth('a tenth of it', small),
    { name: 'the backlog, drained at', value: large.eventsPerSecond, unit: 'events/s' },
  ]
}
