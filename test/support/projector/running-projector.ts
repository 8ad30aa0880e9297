/** The projector as a process runs it, on a journal of its own or on any log. Its time limits are long enough for a busy machine. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, vi } from 'vitest'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import type { EventReader, EventWriter } from '../../../services/log/port.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics, type Metrics } from '../../../services/runtime/ops/metrics.ts'
import { fromStart } from '../events/starts.ts'
import { hashBacker } from './model-tables.ts'

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

/** Starts it. `settings`: of its environment. */
export function startProjector({
  settings,
  ...given
}: Pick<Dependencies, 'reader' | 'tables' | 'databases'> &
  Partial<Dependencies> & { settings?: Record<string, string> }): RunningProjector {
  const metrics = given.metrics ?? createMetrics()
  const service = createProjectorService({
    ...{ hashBacker, metrics, run: 'run', logger: pino({ level: 'silent' }) },
    config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000', ...settings }),
    ...{ now: Date.now, monotonicMs: () => performance.now(), random: () => 0 },
    ...given,
  })
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
