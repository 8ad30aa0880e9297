/** The rejects of either log, embedded or distributed, for the rejects commands. */
import { openExistingDataDirectory } from '../../embedded/data-directory.ts'
import { schemaIdsOf, type WriterSchemas } from '../../projector/ingest/decode.ts'
import type { Config } from '../../shared/config.ts'
import { readerSettings, registryOf } from '../../shared/distributed.ts'
import { openJournalInspector } from '../../shared/event-log/journal/inspector.ts'
import { openKafkaInspector } from '../../shared/event-log/kafka/inspector.ts'
import type { LogRecord, StoredReject } from '../../shared/event-log/port.ts'
import {
  type FoundRejects,
  placeName,
  type RejectFilter,
  type RejectPlace,
  type Searched,
  type TakeRejects,
} from '../../shared/event-log/reject-filter.ts'
import { createLogger } from '../../shared/ops/logger.ts'
import { embeddedDirectory } from '../command.ts'
import { openJournalTarget, openKafkaTarget, type RetryTarget } from './target.ts'

export interface RejectSource {
  /** How many are stored. On Kafka a reject that was stored twice counts twice. */
  total(): Promise<number>
  latest(query: RejectFilter & { limit: number }): Promise<FoundRejects>
  /** Passes on the rejects that are stored at this moment, each once, in parts, until `take` returns false. */
  walk(filter: RejectFilter, take: TakeRejects): Promise<Searched>
  schemas: Schemas
  /** Opens the log for records that are valid events now. In a dry run nothing is appended. */
  openTarget(options: { isDry: boolean }): Promise<RetryTarget>
  close(): Promise<void>
}

/** The schemas behind the schema ids of values, for the log that they came from. */
export interface Schemas {
  /** `undefined`: the fixed ids. */
  known: WriterSchemas | undefined
  /** Looks up the schema ids of the records. Throws `SchemaRegistryError` if one cannot be looked up. */
  learn(records: readonly LogRecord[]): Promise<void>
}

/** Opens the log's rejects: on Kafka if it is configured and no data directory is given. */
export async function openRejectSource(dataDir: string | undefined, config: Config): Promise<RejectSource> {
  const root = embeddedDirectory(dataDir, config)
  return root === undefined ? openKafkaSource(config) : openJournalSource(root)
}

/** The rejects of these places, as far as they are stored. */
export async function findRejects(
  source: RejectSource,
  places: readonly RejectPlace[],
): Promise<{ found: StoredReject[]; missing: string[]; searched: Searched }> {
  const wanted = new Set(places.map(placeName))
  const found: StoredReject[] = []
  const searched = await source.walk({}, async rejects => {
    for (const reject of rejects) if (wanted.delete(placeName(reject.record))) found.push(reject)
    return wanted.size > 0
  })
  return { found, missing: [...wanted], searched }
}

function openJournalSource(root: string): RejectSource {
  const { journal } = openExistingDataDirectory(root)
  const inspector = openJournalInspector(journal)
  const searched = (): Searched => {
    const messages = inspector.rejectCount()
    return { messages, of: messages, unreadable: [], unreadableCount: 0 }
  }
  return {
    total: async () => inspector.rejectCount(),
    latest: async ({ limit, ...filter }) => ({
      ...searched(),
      rejects: inspector.rejects({ ...filter, limit }),
      matched: inspector.rejectCount(filter),
    }),
    async walk(filter, take) {
      await inspector.walkRejects(filter, take)
      return searched()
    },
    schemas: { known: undefined, learn: async () => undefined },
    openTarget: ({ isDry }) => openJournalTarget(journal, { isDry }),
    close: async () => inspector.close(),
  }
}

async function openKafkaSource(config: Config): Promise<RejectSource> {
  const registry = registryOf(config)
  const inspector = await openKafkaInspector(readerSettings(config), { logger: createLogger('error') })
  return {
    total: () => inspector.rejectCount(),
    latest: query => inspector.rejects(query),
    walk: (filter, take) => inspector.walkRejects(filter, take),
    schemas: {
      known: registry?.known,
      learn: async records => registry?.learn(schemaIdsOf(records)),
    },
    openTarget: ({ isDry }) => openKafkaTarget(config, inspector, { isDry }),
    close: () => inspector.close(),
  }
}
