/** The projector as a process runs it, on a journal of its own or on any log. Its time limits are long enough for a busy machine. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeEach, expect, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter } from '../../../services/log/port.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics, type Metrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { fromStart, unkept } from '../events/starts.ts'
import { hashBacker } from './model-tables.ts'
import { useModelTables } from './use-model-tables.ts'

type Dependencies = Parameters<typeof createProjectorService>[0]

export interface RunningProjector {
  service: ProjectorService
  metrics: Metrics
  done: Promise<void>
  /** Aborts it, and resolves or rejects with it. */
  stop(): Promise<void>
  /** Resolves when everything in the log is folded. */
  drained(): Promise<void>
}

type Given = Partial<Dependencies> & {
  /** Of its environment. */
  settings?: Record<string, string>
}

type Needed = Pick<Dependencies, 'reader' | 'tables' | 'databases'>

/** A projector that does not run yet. */
export function createProjector({
  settings,
  ...given
}: Given & Needed): Pick<RunningProjector, 'service' | 'metrics'> {
  const { tables, databases, metrics = createMetrics() } = given
  const service = createProjectorService({
    ...{ hashBacker, metrics, run: 'run', logger: pino({ level: 'silent' }) },
    config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000', ...settings }),
    ...{ now: Date.now, monotonicMs: () => performance.now(), random: () => 0, sleep },
    ...{ shards: [{ tables, databases }], positions: unkept(databases) },
    ...{ follow: async () => {}, showViews: async () => {}, isGivenUp: async () => false },
    rebuild: async () => undefined,
    ...given,
  })
  return { service, metrics }
}

export function startProjector(given: Given & Needed): RunningProjector {
  const { service, metrics } = createProjector(given)
  const abort = new AbortController()
  const done = service.run(abort.signal)
  // The test awaits it later. Until then a failure must not count as an unhandled rejection.
  done.catch(() => {})
  return {
    service,
    metrics,
    done,
    async stop() {
      abort.abort()
      await done
    },
    async drained() {
      // Only a hang takes this long.
      await vi.waitFor(async () => expect(await service.isDrained()).toBe(true), 60_000)
    },
  }
}

export interface TestJournal {
  path: string
  writer: EventWriter
  reader: EventReader
  /** Closes both, and removes the journal. */
  close(): Promise<void>
}

export async function openTestJournal(): Promise<TestJournal> {
  const root = await mkdtemp(join(tmpdir(), 'pledgeview-journal-'))
  const path = join(root, 'journal.sqlite')
  const writer = await openJournalWriter(path)
  const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
  return {
    ...{ path, writer, reader },
    async close() {
      await reader.close()
      await writer.close()
      await rm(root, { recursive: true, force: true })
    },
  }
}

export interface ProjectorWorld extends Omit<TestJournal, 'close'> {
  tables: Tables
  databases: Databases
  /** Starts a projector of them. It is stopped after the test. */
  start(given?: Given): RunningProjector
}

/** Fresh tables and a journal for each test. `mayFail`: a test may leave a projector behind that has failed. */
export function useProjector({ mayFail = false } = {}): ProjectorWorld {
  const model = useModelTables()
  let databases: Databases
  let journal: TestJournal
  let started: RunningProjector[]

  beforeEach(async () => {
    databases = await model.freshDatabases()
    journal = await openTestJournal()
    started = []
    return async () => {
      const ends = await Promise.allSettled(started.map(({ stop }) => stop()))
      await journal.close()
      await model.giveBack(databases)
      for (const end of ends) if (end.status === 'rejected' && !mayFail) throw end.reason
    }
  })

  return {
    get tables() {
      return model.tables
    },
    get databases() {
      return databases
    },
    get path() {
      return journal.path
    },
    get writer() {
      return journal.writer
    },
    get reader() {
      return journal.reader
    },
    start(given = {}) {
      const run = `run-${started.length}`
      const projector = startProjector({
        reader: journal.reader,
        tables: model.tables,
        databases,
        run,
        ...given,
      })
      started.push(projector)
      return projector
    },
  }
}
