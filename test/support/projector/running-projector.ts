/** The projector as a process runs it, on a journal of its own or on any log. Its time limits are long enough for a busy machine. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { beforeEach, expect, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import { createProjectorService } from '../../../services/projector/service.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { fromStart, unkept } from '../events/starts.ts'
import { hashBacker } from './model-tables.ts'
import { useModelTables } from './use-model-tables.ts'

type Dependencies = Parameters<typeof createProjectorService>[0]

export type RunningProjector = ReturnType<typeof startProjector>

type Given = Partial<Dependencies> & {
  /** Of its environment. */
  settings?: Record<string, string>
}

type Needed = Pick<Dependencies, 'reader' | 'tables' | 'databases'>

/** A projector that does not run yet. */
export function createProjector({ settings, ...given }: Given & Needed) {
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

export function startProjector(given: Given & Needed) {
  const { service, metrics } = createProjector(given)
  const abort = new AbortController()
  const done = service.run(abort.signal)
  // The test awaits it later. Until then a failure must not count as an unhandled rejection.
  done.catch(() => {})
  return {
    service,
    metrics,
    done,
    /** Aborts it, and resolves or rejects with it. */
    async stop(): Promise<void> {
      abort.abort()
      await done
    },
    /** Resolves when everything in the log is folded. */
    async drained(): Promise<void> {
      // Only a hang takes this long.
      await vi.waitFor(async () => expect(await service.isDrained()).toBe(true), 60_000)
    },
  }
}

type TestJournal = Awaited<ReturnType<typeof openTestJournal>>

export async function openTestJournal() {
  const root = await mkdtemp(join(tmpdir(), 'pledgeview-journal-'))
  const path = join(root, 'journal.sqlite')
  const writer = await openJournalWriter(path)
  const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
  return {
    ...{ path, writer, reader },
    /** Closes both, and removes the journal. */
    async close(): Promise<void> {
      await reader.close()
      await writer.close()
      await rm(root, { recursive: true, force: true })
    },
  }
}

interface ProjectorWorld extends Omit<TestJournal, 'close'> {
  tables: Tables
  databases: Databases
  /** Starts a projector of them. It is stopped after the test. */
  start(given?: Given): RunningProjector
}

/** Fresh tables and a journal for each test. `mayFail`: a test may leave a projector behind that has failed. */
export function useProjector({ mayFail = false } = {}): ProjectorWorld {
  const model = useModelTables()
  let started: RunningProjector[]
  const world = {
    start(given) {
      const { reader, tables, databases } = world
      const run = `run-${started.length}`
      const projector = startProjector({ reader, tables, databases, run, ...given })
      started.push(projector)
      return projector
    },
  } as ProjectorWorld

  beforeEach(async () => {
    const databases = await model.freshDatabases()
    const { close, ...journal } = await openTestJournal()
    started = []
    Object.assign(world, { tables: model.tables, databases, ...journal })
    return async () => {
      const ends = await Promise.allSettled(started.map(({ stop }) => stop()))
      await close()
      await model.giveBack(databases)
      for (const end of ends) if (end.status === 'rejected' && !mayFail) throw end.reason
    }
  })
  return world
}
