/**
 * A Confluent-compatible schema registry: what the schema ids of values stand for, and the ids of our own schemas.
 *
 * Promises:
 * - what an id stands for never changes, so it is asked for once and kept;
 * - that an id stands for nothing is believed when the registry has said so several times in a row, because one of its
 *   instances may be behind the others, and then only for `missingMs`, because it may be registered yet;
 * - every other failure is a `SchemaRegistryError`: an event is never taken for bad because the registry is away;
 * - at most `requestsMax` requests run at once, each for at most `requestMsMax`, and none once a call has ended;
 * - no message holds credentials.
 *
 * It does not try again what failed: its callers know for how long that makes sense.
 */
import { setTimeout } from 'node:timers/promises'
import { type SchemaIds, schemas } from '../../contracts/events/codec.ts'
import { type EventType, type Topic, topicOf } from '../../contracts/events/event.ts'
import {
  type RegisteredSchema,
  type RegistryAnswer,
  readId,
  readSchema,
  SchemaRegistryError,
  schemaIdMax,
} from './schema-registry-answers.ts'
import { createRegistryRequest, type RegistryAddress } from './schema-registry-http.ts'

export interface SchemaRegistrySettings extends RegistryAddress {
  /** How long one request may take, ms. Default 5,000. */
  requestMsMax?: number
  /** Requests that run at once. Default 4. */
  requestsMax?: number
  /** Ids that are remembered; more only while one call of `learn` needs them. Default 1,000. */
  schemasMax?: number
  /** How long the registry's word that it has no such schema holds, ms. Default 10,000. */
  missingMs?: number
}

export interface SchemaRegistryDependencies {
  /** Milliseconds, monotonic. */
  monotonicMs?: () => number
  /** Resolves after that many milliseconds, or as soon as the signal aborts. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
}

export interface SchemaRegistry {
  /** What an id stands for, as far as that is known. Asks nobody. */
  known(schemaId: number): RegisteredSchema | undefined
  /**
   * Asks for those of the ids of which nothing is known; once it resolves, `known` answers for all of them. Throws
   * `SchemaRegistryError` where one cannot be told; what the others stand for is kept. One call at a time.
   */
  learn(schemaIds: ReadonlySet<number>, signal?: AbortSignal): Promise<void>
  /**
   * The id of a schema under a subject, registered where it is not yet. It is looked up first, so that a producer that
   * may not register gets along once somebody else did. Throws `SchemaRegistryError`, also where the registry finds the
   * schema incompatible with those before it.
   */
  register(subject: string, schema: object, signal?: AbortSignal): Promise<number>
}

const defaults = { requestMsMax: 5_000, requestsMax: 4, schemasMax: 1_000, missingMs: 10_000 }

const missingAsksMax = 3
const missingPauseMs = 200

/** Connects when it is first asked. Throws `TypeError` on a URL that is none of a registry. */
export function createSchemaRegistry(
  settings: SchemaRegistrySettings,
  { monotonicMs = () => performance.now(), sleep = pause }: SchemaRegistryDependencies = {},
): SchemaRegistry {
  const { requestMsMax, requestsMax, schemasMax, missingMs } = { ...defaults, ...settings }
  const request = createRegistryRequest(settings, requestMsMax)
  const entries = new Map<number, { stands: RegisteredSchema; untilMs: number }>()

  function known(schemaId: number): RegisteredSchema | undefined {
    if (schemaId > schemaIdMax) return { reason: 'is none that a schema registry gives' }
    const entry = entries.get(schemaId)
    return entry && monotonicMs() < entry.untilMs ? entry.stands : undefined
  }

  async function ask<T>(
    what: string,
    read: (answer: RegistryAnswer) => T,
    ...call: Parameters<typeof request>
  ): Promise<T> {
    try {
      return read(await request(...call))
    } catch (cause) {
      if (!(cause instanceof SchemaRegistryError)) throw cause
      const message = `the schema registry at ${settings.url} did not tell ${what}: ${cause.message}`
      throw new SchemaRegistryError(message, cause)
    }
  }

  /** Keeps what each id stands for; resolves with the ids that the registry says it does not have. */
  async function askAll(schemaIds: readonly number[], signal: AbortSignal | undefined): Promise<number[]> {
    const missing: number[] = []
    await inParallel(schemaIds, requestsMax, async schemaId => {
      const stands = await ask(
        `schema id ${schemaId}`,
        readSchema,
        `/schemas/ids/${schemaId}`,
        undefined,
        signal,
      )
      if (stands) keep(schemaId, stands, Number.POSITIVE_INFINITY)
      else missing.push(schemaId)
    })
    return missing
  }

  function keep(schemaId: number, stands: RegisteredSchema, untilMs: number): void {
    // Anew at the end, which is where those stand that are forgotten last.
    entries.delete(schemaId)
    entries.set(schemaId, { stands, untilMs })
  }

  function forgetSome(needed: ReadonlySet<number>): void {
    for (const schemaId of entries.keys()) {
      if (entries.size <= schemasMax) return
      if (!needed.has(schemaId)) entries.delete(schemaId)
    }
  }

  return {
    known,

    async learn(schemaIds, signal) {
      let asked = [...schemaIds].filter(schemaId => known(schemaId) === undefined)
      for (let attempt = 1; asked.length > 0; attempt++) {
        asked = await askAll(asked, signal)
        if (attempt === missingAsksMax) break
        if (asked.length > 0) await sleep(missingPauseMs * attempt, signal)
      }
      const reason = 'is none that the schema registry has'
      for (const schemaId of asked) keep(schemaId, { reason }, monotonicMs() + missingMs)
      forgetSome(schemaIds)
    },

    async register(subject, schema, signal) {
      const what = `the id of the schema of ${subject}`
      const path = `/subjects/${encodeURIComponent(subject)}`
      const body = { schema: JSON.stringify(schema) }
      const id = await ask(what, readId, path, body, signal)
      return id ?? (await ask(what, readNewId, `${path}/versions`, body, signal))
    },
  }
}

/**
 * The ids of the current schemas under the subjects of their topics (`<topic>-value`), for `createStateEncoder`.
 * `topicName` gives a topic's name in the cluster. Throws `SchemaRegistryError`.
 */
export async function registerSchemas(
  registry: Pick<SchemaRegistry, 'register'>,
  topicName: (topic: Topic) => string,
  signal?: AbortSignal,
): Promise<SchemaIds> {
  const idOf = (type: EventType): Promise<number> =>
    registry.register(`${topicName(topicOf[type])}-value`, schemas[type], signal)
  return { campaign: await idOf('campaign'), pledge: await idOf('pledge'), 'api-key': await idOf('api-key') }
}

function readNewId(answer: RegistryAnswer): number {
  const id = readId(answer)
  if (id !== undefined) return id
  throw new SchemaRegistryError('it has no such subject to register under', { retryable: false })
}

/** Works on all items, some at once. After a failure it begins nothing more, and rejects when what runs has ended. */
async function inParallel<T>(
  items: readonly T[],
  atOnceMax: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const failures: unknown[] = []
  async function worker(): Promise<void> {
    for (const item of queue) {
      if (failures.length > 0) return
      await work(item).catch(cause => failures.push(cause))
    }
  }
  await Promise.all(Array.from({ length: atOnceMax }, worker))
  if (failures.length > 0) throw failures[0]
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, signal && { signal }).catch(() => {})
}
