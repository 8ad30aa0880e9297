/** Where rejects go that are events now: their own topics, beside what producers append. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import type { Config } from '../shared/config.ts'
import { databasesOf, kafkaSettings, serverSettings } from '../shared/distributed.ts'
import { openJournalWriter } from '../shared/event-log/journal/journal.ts'
import type { KafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import { openKafkaWriter } from '../shared/event-log/kafka/writer.ts'
import type { NewRecord, PartitionLag } from '../shared/event-log/port.ts'
import { createLogger } from '../shared/logger.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { ledgerVersions, type Versions } from './rejects-versions.ts'

export interface RetryTarget {
  /** The versions of the events' entities that the log is known to have, by topic and key. */
  versions(events: readonly ChangeEvent[]): Promise<Versions>
  /** Appends in order; resolves once durable. */
  append(records: readonly NewRecord[]): Promise<void>
  close(): Promise<void>
}

const projectedBounds = { msMax: 30_000, lookMs: 250 }

/** A journal is never compacted, so older versions may follow newer ones, and none has to be known. */
export async function openJournalTarget(path: string, { isDry }: { isDry: boolean }): Promise<RetryTarget> {
  const writer = isDry ? undefined : await openJournalWriter(path)
  return {
    versions: async () => new Map(),
    append: async records => writer?.append(records),
    close: async () => writer?.close(),
  }
}

/**
 * Kafka's topics may be compacted: of a key they keep what was appended last, and a version that is older than that must
 * not come after it, or a rebuild would go back to it. The ledger knows the versions, once all is projected that was in
 * the log before. Throws where that is not so within 30 s.
 */
export async function openKafkaTarget(
  config: Config,
  inspector: Pick<KafkaInspector, 'group'>,
  { isDry }: { isDry: boolean },
): Promise<RetryTarget> {
  if (!isDry) await awaitProjected(inspector)
  const tables = openServerTables(serverSettings(config))
  try {
    const writer = isDry
      ? undefined
      : await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') })
    return {
      versions: events => ledgerVersions(tables, databasesOf(config), events),
      append: async records => writer?.append(records),
      async close() {
        await writer?.close()
        await tables.close()
      },
    }
  } catch (error) {
    await tables.close()
    throw error
  }
}

/** Waits until the projectors have committed all that is in the log at this moment. Throws where they do not in time. */
export async function awaitProjected(
  inspector: Pick<KafkaInspector, 'group'>,
  { msMax, lookMs } = projectedBounds,
): Promise<void> {
  const ends = (await inspector.group()).lag
  const deadline = performance.now() + msMax
  for (let present = ends; ; present = (await inspector.group()).lag) {
    const waiting = waitingBelow(ends, present)
    if (waiting === 0) return
    if (performance.now() > deadline) {
      throw new Error(
        `${waiting} records of the log are not projected yet, and newer versions of what is retried may be among them: ` +
          'let the projectors get to the end of the log, then retry again',
      )
    }
    await sleep(lookMs)
  }
}

function waitingBelow(ends: readonly PartitionLag[], present: readonly PartitionLag[]): number {
  const committed = new Map(present.map(at => [`${at.topic}/${at.partition}`, at.committed]))
  return ends.reduce(
    (sum, { topic, partition, end }) =>
      sum + Math.max(0, end - (committed.get(`${topic}/${partition}`) ?? 0)),
    0,
  )
}
