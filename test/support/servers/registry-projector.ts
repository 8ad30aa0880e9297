/** The projector service with schemas from a registry, and producers that register their schemas there. */
import { pino } from 'pino'
import { expect, vi } from 'vitest'
import { type EventType, keyOf, type StateEvent } from '../../../contracts/events/event.ts'
import type { EventReader } from '../../../services/log/port.ts'
import type { SchemaRegistry } from '../../../services/log/registry/schema-registry.ts'
import { createProjectorService, type ProjectorService } from '../../../services/projector/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { hashBacker } from '../projector/model-tables.ts'

export interface RunningProjector {
  service: ProjectorService
  done: Promise<void>
  /** Aborts it, and resolves or rejects with it. */
  stop(): Promise<void>
  /** How often the registry was asked again. */
  schemaRetries(): Promise<number>
  /** Resolves when everything in the log is folded. */
  drained(): Promise<void>
}

export function startProjector({
  settings = {},
  monotonicMs = () => performance.now(),
  ...dependencies
}: {
  reader: EventReader
  tables: Tables
  databases: Databases
  schemaRegistry: SchemaRegistry
  settings?: Record<string, string>
  monotonicMs?: () => number
}): RunningProjector {
  const metrics = createMetrics()
  const service = createProjectorService({
    ...dependencies,
    config: readConfig({ PLEDGEVIEW_FOLD_MS_MAX: '30000', PLEDGEVIEW_BATCH_MS_MAX: '20', ...settings }),
    hashBacker,
    run: 'test',
    metrics,
    logger: pino({ level: 'silent' }),
    now: Date.now,
    monotonicMs,
    random: () => 0,
  })
  const abort = new AbortController()
  const done = service.run(abort.signal)
  // The test awaits it later. Until then a failure must not count as an unhandled rejection.
  done.catch(() => {})
  return {
    service,
    done,
    async stop() {
      abort.abort()
      await done
    },
    async schemaRetries() {
      const { values } = await metrics.retries.get()
      return values.find(({ labels }) => labels.stage === 'schemas')?.value ?? 0
    },
    async drained() {
      // Only a hang takes this long.
      await vi.waitFor(async () => expect(await service.isDrained()).toBe(true), 60_000)
    },
  }
}

/** A state as a producer of another version writes it: without some fields of ours, with other fields and symbols. */
export interface ForeignState {
  type: EventType
  key: string
  data: object
}

/** One of our own states, for a producer of any version. */
export function stateOf(event: StateEvent): ForeignState {
  return { type: event.type, key: keyOf(event), data: event.data }
}
