/** The rejects of either log, embedded or distributed, as the rejects commands need them. */
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { schemaIdsOf, type WriterSchemas } from '../projector/decode.ts'
import type { Config } from '../shared/config.ts'
import { isDistributed, readerSettings, registryOf } from '../shared/distributed.ts'
import { openJournalInspector } from '../shared/event-log/journal/inspector.ts'
import { openKafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import type { LogRecord, StoredReject } from '../shared/event-log/port.ts'
import {
  type FoundRejects,
  placeName,
  type RejectFilter,
  type RejectPlace,
  type Searched,
  type TakeRejects,
} from '../shared/event-log/reject-filter.ts'
import { createLogger } from '../shared/logger.ts'
import { defaultDataDirectory } from './command.ts'
import { openJournalTarget, openKafkaTarget, type RetryTarget } from './rejects-target.ts'

export interface RejectSource {
  /** How many are kept; on Kafka one that was put twice counts twice. */
  total(): Promise<number>
  latest(query: RejectFilter & { limit: number }): Promise<FoundRejects>
  /** Hands over those that are kept at this moment, each once, in parts, until `take` wants no more. */
  walk(filter: RejectFilter, take: TakeRejects): Promise<Searched>
  schemas: Schemas
  /** Where those go that are events now. A dry one is not appended to. */
  openTarget(options: { isDry: boolean }): Promise<RetryTarget>
  close(): Promise<void>
}

/** What the schema ids of values stand for, in the log that they came from. */
export interface Schemas {
  /** None: the fixed ids. */
  known: WriterSchemas | undefined
  /** Asks for what the records' ids stand for. Throws `SchemaRegistryError` where that cannot be told. */
  learn(records: readonly LogRecord[]): Promise<void>
}

/** Opens the log's rejects: of Kafka where it is configured and no data directory is named. */
export async function openRejectSource(dataDir: string | undefined, config: Config): Promise<RejectSource> {
  return dataDir === undefined && isDistributed(config)
    ? openKafkaSource(config)
    : openJournalSource(dataDir ?? defaultDataDirectory)
}

/** The rejects of these places, as many of them as are kept. */
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
