/** The target of a retry: the topics of the records, to which producers also append. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { currentDatabases, kafkaSettings, readerSettings } from '../../distributed.ts'
import { type KafkaInspector, openKafkaInspector } from '../../log/kafka/inspector.ts'
import { openKafkaWriter } from '../../log/kafka/writer.ts'
import type { EventWriter, NewRecord, PartitionLag } from '../../log/port.ts'
import type { Config } from '../../runtime/config.ts'
import { createLogger } from '../../runtime/ops/logger.ts'
import type { Tables } from '../../tables/port.ts'
import { ledgerVersions, type Versions } from './versions.ts'

export interface RetryTarget {
  /** The versions that the log is known to have of these events' entities, by topic and key. */
  versions(events: readonly ChangeEvent[]): Promise<Versions>
  /** Appends in order. Resolves when the records are durable. */
  append(records: readonly NewRecord[]): Promise<void>
  close(): Promise<void>
}

const projectedBounds = { msMax: 30_000, lookMs: 250 }

/** A journal is never compacted, so an older version may follow a newer one, and versions need not be known. */
export function journalTarget(
  writer: Pick<EventWriter, 'append'>,
  { isDry }: { isDry: boolean },
): RetryTarget {
  return {
    versions: async () => new Map(),
    append: async records => (isDry ? undefined : writer.append(records)),
    close: async () => undefined,
  }
}

/**
 * Kafka's topics may be compacted: they keep the record of a key that was appended last. So a version must not be
 * appended after a newer one, or a rebuild would return to it. The ledger knows the versions when everything that was
 * in the log is projected. Throws if that is not so within 30 s.
 */
export async function openKafkaTarget(
  config: Config,
  tables: Pick<Tables, 'rows'>,
  { isDry }: { isDry: boolean },
): Promise<RetryTarget> {
  const logger = createLogger('error')
  if (!isDry) {
    const inspector = await openKafkaInspector(readerSettings(config), { logger })
    await awaitProjected(inspector).finally(() => inspector.close())
  }
  const writer = isDry ? undefined : await openKafkaWriter(kafkaSettings(config), { logger })
  return {
    versions: async events => ledgerVersions(tables, await currentDatabases(config, tables), events),
    append: async records => writer?.append(records),
    close: async () => writer?.close(),
  }
}

/**
 * Waits until the projectors have committed everything that is in the log at this moment. Throws if that takes too
 * long.
 */
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
        `${waiting} records of the log are not projected yet, and some may be newer versions of the retried records: ` +
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
