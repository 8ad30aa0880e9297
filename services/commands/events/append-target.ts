/**
 * Where `events append` appends: the journal of a data directory, or Kafka. In a short run it also counts stale events: those of
 * which the ledger, or this run, has a newer version. If no ledger answers, nothing is counted, and the command goes on.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodeState, type StateEncoder } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import {
  currentDatabases,
  kafkaSettings,
  serverSettings,
  stateEncoderOf,
} from '../../distributed/settings.ts'
import { isAlive } from '../../embedded/access.ts'
import { openDataDirectory, readServiceAddress } from '../../embedded/data-directory.ts'
import { openRunningTables } from '../../embedded/tables.ts'
import { openKafkaWriter } from '../../log/kafka/writer.ts'
import { openJournalWriter } from '../../log/local/journal.ts'
import type { EventWriter } from '../../log/port.ts'
import { versionOf } from '../../projector/ingest/ledger-rows.ts'
import { opened } from '../../runtime/async/closing.ts'
import type { Config } from '../../runtime/config.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { createLogger } from '../../runtime/ops/logger.ts'
import { openTables } from '../../tables/clickhouse/clickhouse.ts'
import { entityOf, ledgerVersions } from '../../tables/ledger-versions.ts'

/** An event log that is open for appending, and the encoder for its values. */
export interface AppendTarget {
  writer: EventWriter
  encode: StateEncoder
  stale?: StaleCounter | undefined
}

export interface StaleCounter {
  /** How many of these, which are appended next, are stale; `undefined` if it cannot be told. */
  count(events: readonly ChangeEvent[]): Promise<number | undefined>
  close(): Promise<void>
}

// A question for each thousand events would take most of the time of a load. `status` samples what a load did.
const countedMax = 10_000

/** Appends to the journal of a data directory, which is made if it is missing. */
export async function openJournalTarget(directory: string, config?: Config): Promise<AppendTarget> {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new Error(`cannot make the data directory ${directory}: ${messageOf(cause)}`, { cause })
  }
  const writer = await openJournalWriter(join(directory, 'journal.sqlite'))
  return { writer, encode: encodeState, stale: config && (await openStaleCounter(directory, config)) }
}

/** Appends to Kafka, under the ids of the registry if one is configured. */
export async function openKafkaTarget(config: Config): Promise<AppendTarget> {
  const encode = await stateEncoderOf(config)
  const writer = await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') })
  return { encode, writer, stale: await openStaleCounter(undefined, config) }
}

/** Counts by the ledger of the service that runs on the directory, or by that of the configured ClickHouse. `undefined` if there is none. */
async function openStaleCounter(
  directory: string | undefined,
  config: Config,
): Promise<StaleCounter | undefined> {
  try {
    const ledger = directory === undefined ? await ofServer(config) : await ofService(directory, config)
    if (!ledger) return undefined
    const { tables, databases } = ledger
    const count = createStaleCount(events => ledgerVersions(tables, databases, events))
    return { count: events => count(events).catch(() => undefined), close: () => ledger.close() }
  } catch {
    return undefined
  }
}

async function ofServer(config: Config) {
  if (config.PLEDGEVIEW_CLICKHOUSE_URL === undefined) return undefined
  return opened(async open => {
    const tables = open(openTables(serverSettings(config)))
    return { tables, databases: await currentDatabases(config, tables) }
  })
}

async function ofService(directory: string, config: Config) {
  const service = readServiceAddress(openDataDirectory(directory))
  return service && isAlive(service) ? openRunningTables(service.clickhouse, config) : undefined
}

/** Counts in a run of at most so many events. `versions`: those of the ledger, by `entityOf`. */
export function createStaleCount(
  versions: (events: readonly ChangeEvent[]) => Promise<ReadonlyMap<string, bigint>>,
  eventsMax = countedMax,
): (events: readonly ChangeEvent[]) => Promise<number | undefined> {
  const appended = new Map<string, bigint>()
  let counted = 0
  return async events => {
    counted += events.length
    if (counted > eventsMax) return undefined
    const present = await versions(events)
    let stale = 0
    for (const event of events) {
      const entity = entityOf(event)
      const version = versionOf(event)
      const isStale = [present.get(entity), appended.get(entity)].some(
        known => known !== undefined && known > version,
      )
      if (isStale) stale++
      else appended.set(entity, version)
    }
    return stale
  }
}
