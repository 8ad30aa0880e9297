/** What the rejects commands work on: the dead-letter table, and the log that a retry appends to again. */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { registryOf } from '../../distributed/settings.ts'
import type { LogRecord } from '../../log/port.ts'
import { schemaMissingMs } from '../../log/registry/schema-registry.ts'
import { schemaIdsOf } from '../../projector/ingest/decode.ts'
import { NotProjected, untilProjected } from '../../projector/positions/until-projected.ts'
import { sleep } from '../../runtime/async/sleep.ts'
import { ledgerVersions } from '../../tables/ledger-versions.ts'
import { type Model, onModel } from '../on-model.ts'

export type RejectSource = ReturnType<typeof sourceOf>
export type Schemas = RejectSource['schemas']
export type RetryTarget = Awaited<ReturnType<typeof openTarget>>

/** Runs the work on the rejects: of Kafka's log if it is configured and no data directory is given. */
export function withRejects<T>(
  dataDir: string | undefined,
  work: (source: RejectSource) => Promise<T>,
): Promise<T> {
  return onModel(dataDir, model => work(sourceOf(model)))
}

function sourceOf(model: Model) {
  const { tables, databases } = model
  const registry = model.isEmbedded ? undefined : registryOf(model.config)
  let askedAgain: Promise<void> | undefined
  return {
    ...{ tables, databases, openTarget: () => openTarget(model) },
    /** The schemas behind the schema ids of values, for the log that they came from. */
    schemas: {
      /** `undefined`: the fixed ids. */
      known: registry?.known,
      /** Looks up the schema ids of the records. Throws `SchemaRegistryError` if one cannot be looked up. */
      learn: async (records: readonly LogRecord[]) => registry?.learn(schemaIdsOf(records)),
      /** Resolves when every service that believes now that a schema is missing will have asked for it again. */
      untilAskedAgain: () => (askedAgain ??= sleep(schemaMissingMs)),
    },
    /** The versions that the ledger has of these events' entities, by `entityOf`. */
    async versions(events: readonly ChangeEvent[]): Promise<Map<string, bigint>> {
      await databases.follow(tables)
      return ledgerVersions(tables, databases, events)
    },
  }
}

/**
 * Kafka's topics may be compacted: they keep the record of a key that was appended last. So a version must not be appended after
 * a newer one, or a rebuild would return to it. The ledger knows the versions when everything in the log is projected.
 */
async function openTarget({ isEmbedded, lag, writer }: Model) {
  const projected = () => untilProjected(lag, { msMax: projectedMsMax, wayOn })
  if (!isEmbedded) await projected()
  const { append } = await writer()
  return {
    append,
    /** Waits for the projectors to read what was appended, but not for ever. */
    untilProjected: () => projected().catch(ifWaiting),
  }
}

/** Something may be a newer version of a retried record. */
const wayOn =
  ', and some may be newer versions of the retried records: let the projectors get to the end of the log, then retry again'
const projectedMsMax = 30_000

function ifWaiting(error: unknown): void {
  if (!(error instanceof NotProjected)) throw error
}
