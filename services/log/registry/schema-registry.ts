/**
 * A client of a Confluent-compatible schema registry: the schemas behind schema ids, and the ids of our own schemas.
 *
 * Promises:
 * - the schema of an id never changes, so it is requested once and kept;
 * - an id counts as unknown only if the registry has said so several times in a row, because one of its instances may
 *   be behind the others. Even then it counts only for `missingMs`, because it may be registered later. Then it is asked for once;
 * - every other failure is a `SchemaRegistryError`: an event is never rejected because the registry is away;
 * - at most `requestsMax` requests run at once, each for at most `requestMsMax`, and none after a call has ended;
 * - no message contains credentials.
 *
 * It does not retry failures. Its callers know how long a retry makes sense.
 */
import { type SchemaIds, schemas } from '../../../contracts/events/codec.ts'
import { type EventType, type Topic, topicOf } from '../../../contracts/events/event.ts'
import { type RetryDependencies, retry } from '../../runtime/async/retry.ts'
import { sleep as realSleep } from '../../runtime/async/sleep.ts'
import {
  type RegisteredSchema,
  type RegistryAnswer,
  readId,
  readSchema,
  SchemaRegistryError,
  schemaIdMax,
} from './answers.ts'
import { createRegistryRequest, type RegistryAddress } from './http.ts'

export interface SchemaRegistrySettings extends RegistryAddress {
  /** How long one request may take, ms. Default 5,000. */
  requestMsMax?: number
  /** How long an answer that a schema does not exist is believed, ms. Default: `schemaMissingMs`. */
  missingMs?: number
}

export type SchemaRegistry = ReturnType<typeof createSchemaRegistry>

/** The default of `missingMs`. Records of an unknown schema may come all the time, and each question delays the others. */
export const schemaMissingMs = 1_000
/** Why a record is rejected if its schema does not exist. */
export const schemaMissing = 'is not in the schema registry'

const requestMsMaxDefault = 5_000
// Requests that run at once.
const requestsMax = 4
// Ids that are remembered. More only while one call of `learn` needs them.
const schemasMax = 1_000
const missingAsksMax = 3
const missingPauseMs = 200

/** Connects at the first request. Throws `TypeError` if the URL cannot be a registry's. */
export function createSchemaRegistry(
  settings: SchemaRegistrySettings,
  {
    monotonicMs = () => performance.now(),
    sleep = realSleep,
  }: Pick<RetryDependencies, 'monotonicMs' | 'sleep'> = {},
) {
  const { requestMsMax = requestMsMaxDefault, missingMs = schemaMissingMs } = settings
  const request = createRegistryRequest(settings, requestMsMax)
  const entries = new Map<number, { stands: RegisteredSchema; untilMs: number }>()

  /** What an id means, as far as it is known. Sends no request. */
  function known(schemaId: number): RegisteredSchema | undefined {
    if (schemaId > schemaIdMax) return { reason: 'is not an id that a schema registry gives' }
    const entry = entries.get(schemaId)
    return entry && monotonicMs() < entry.untilMs ? entry.stands : undefined
  }

  /** Whether what is known of it can never change. */
  const isHeld = (schemaId: number) =>
    schemaId > schemaIdMax || entries.get(schemaId)?.untilMs === Number.POSITIVE_INFINITY

  async function ask<T>(
    what: string,
    read: (answer: RegistryAnswer) => T,
    ...call: Parameters<typeof request>
  ): Promise<T> {
    try {
      return read(await request(...call))
    } catch (cause) {
      if (!(cause instanceof SchemaRegistryError)) throw cause
      const message = `the schema registry at ${settings.url} did not return ${what}: ${cause.message}`
      throw new SchemaRegistryError(message, cause)
    }
  }

  /** Stores the meaning of each id. Resolves with the ids that the registry does not have. */
  async function askAll(schemaIds: readonly number[], signal: AbortSignal | undefined): Promise<number[]> {
    const missing: number[] = []
    const askOne = async (schemaId: number) => {
      const path = `/schemas/ids/${schemaId}`
      const stands = await ask(`schema id ${schemaId}`, readSchema, path, undefined, signal)
      if (stands) keep(schemaId, stands, Number.POSITIVE_INFINITY)
      else missing.push(schemaId)
    }
    for (let first = 0; first < schemaIds.length; first += requestsMax) {
      const asked = await Promise.allSettled(schemaIds.slice(first, first + requestsMax).map(askOne))
      // After a failure nothing more is asked.
      for (const answer of asked) if (answer.status === 'rejected') throw answer.reason
    }
    return missing
  }

  function keep(schemaId: number, stands: RegisteredSchema, untilMs: number): void {
    // Moved to the end: ids at the end are forgotten last.
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

    /**
     * Requests the ids that are not known yet. When it resolves, `known` answers for all of them. Throws
     * `SchemaRegistryError` if one cannot be read; the others are kept. One call at a time.
     */
    async learn(schemaIds: ReadonlySet<number>, signal?: AbortSignal): Promise<void> {
      // Beside one that is unknown, also those that were missing before: their answers would expire while the others are asked for.
      const isAsked = [...schemaIds].some(schemaId => known(schemaId) === undefined)
      let asked = isAsked ? [...schemaIds].filter(schemaId => !isHeld(schemaId)) : []
      const asksMax = asked.some(schemaId => !entries.has(schemaId)) ? missingAsksMax : 1
      for (let attempt = 1; asked.length > 0; attempt++) {
        asked = await askAll(asked, signal)
        if (attempt === asksMax) break
        if (asked.length > 0) await sleep(missingPauseMs * attempt, signal)
      }
      for (const schemaId of asked) keep(schemaId, { reason: schemaMissing }, monotonicMs() + missingMs)
      forgetSome(schemaIds)
    },

    /**
     * The id of a schema under a subject. The schema is registered if it is not yet. It is looked up first, so that a
     * producer without the right to register works when another one has registered it. Throws `SchemaRegistryError`,
     * also if the registry finds the schema incompatible with earlier ones.
     */
    async register(subject: string, schema: object): Promise<number> {
      const what = `the id of the schema of ${subject}`
      const path = `/subjects/${encodeURIComponent(subject)}`
      const body = { schema: JSON.stringify(schema) }
      const lookUp = () => ask(what, readId, path, body)
      const found = await lookUp()
      if (found !== undefined) return found
      try {
        return await ask(what, readNewId, `${path}/versions`, body)
      } catch (error) {
        // Another process may have registered the same schema at this moment. Some registries refuse the second request then.
        const policy = {
          isRetryable: (cause: unknown) => cause === error,
          attemptsMax: missingAsksMax + 1,
          pauseMsMin: missingPauseMs,
          pauseMsMax: 4 * missingPauseMs,
        }
        const again = async () => {
          const registered = await lookUp()
          if (registered === undefined) throw error
          return registered
        }
        return retry(again, policy, { monotonicMs, sleep })
      }
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
): Promise<SchemaIds> {
  const idOf = (type: EventType): Promise<number> =>
    registry.register(`${topicName(topicOf[type])}-value`, schemas[type])
  return { campaign: await idOf('campaign'), pledge: await idOf('pledge'), 'api-key': await idOf('api-key') }
}

function readNewId(answer: RegistryAnswer): number {
  const id = readId(answer)
  if (id !== undefined) return id
  throw new SchemaRegistryError('it has no such subject to register under', { retryable: false })
}
