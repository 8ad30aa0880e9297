/**
 * What a schema registry's answers mean. Pure.
 *
 * Everything turns on one distinction: that the registry has no such schema is something that it says itself, with an
 * error code of its own. A 404 of a proxy, or of a wrong path, is a failure like any other, and so is an answer of
 * success that no registry gives.
 *
 * Source: Confluent Schema Registry API, `GET /schemas/ids/{id}` and `POST /subjects/{subject}`.
 */
import { z } from 'zod'

/** What a schema id stands for: a schema, or why no value under it can be read, said of the id (`is ...`). */
export type RegisteredSchema = { schema: object } | { reason: string }

export interface RegistryAnswer {
  status: number
  body: string
}

/** The registry failed, or refused. `retryable` says whether the same request may succeed later. */
export class SchemaRegistryError extends Error {
  override name = 'SchemaRegistryError'
  readonly retryable: boolean

  constructor(message: string, { retryable }: { retryable: boolean }) {
    super(message)
    this.retryable = retryable
  }
}

/** The largest id that a registry gives: they are positive integers of 32 bits, signed. */
export const schemaIdMax = 2 ** 31 - 1

const schemaForm = z.object({
  schema: z.string(),
  /** Left out by those that know nothing but Avro, and by most for Avro. */
  schemaType: z.string().nullish(),
  references: z.array(z.unknown()).nullish(),
})
const idForm = z.object({ id: z.number().int().min(1).max(schemaIdMax) })
const errorForm = z.object({ error_code: z.number(), message: z.string().optional() })

const subjectNotFound = 40_401
const schemaNotFound = 40_403

// What passes: overload, a restart, and a proxy that finds nobody behind it.
const passingStatuses: ReadonlySet<number> = new Set([404, 408, 425, 429])

/** The schema under an id, or `undefined` where the registry says that it has none. Throws `SchemaRegistryError`. */
export function readSchema(answer: RegistryAnswer): RegisteredSchema | undefined {
  if (answer.status !== 200) {
    if (answer.status === 404 && errorOf(answer)?.error_code === schemaNotFound) return undefined
    throw failure(answer)
  }
  const { schema, schemaType, references } = readForm(schemaForm, answer)
  if (typeof schemaType === 'string' && schemaType !== 'AVRO') {
    return { reason: `is a schema of type ${shortened(schemaType)}; only AVRO is read` }
  }
  if (references && references.length > 0) {
    return { reason: 'is a schema that refers to others; only one that is whole is read' }
  }
  const parsed = parseJson(schema)
  // A primitive may stand as its bare name, which is no object.
  if (typeof parsed === 'string') return { schema: { type: parsed } }
  if (typeof parsed === 'object' && parsed !== null) return { schema: parsed }
  return { reason: 'is a schema that is not JSON' }
}

/** The id that a schema has under a subject, or `undefined` where it has none yet. Throws `SchemaRegistryError`. */
export function readId(answer: RegistryAnswer): number | undefined {
  if (answer.status === 200) return readForm(idForm, answer).id
  const code = answer.status === 404 ? errorOf(answer)?.error_code : undefined
  if (code === subjectNotFound || code === schemaNotFound) return undefined
  throw failure(answer)
}

function readForm<T>(form: z.ZodType<T>, { body }: RegistryAnswer): T {
  const read = form.safeParse(parseJson(body))
  if (read.success) return read.data
  throw new SchemaRegistryError('it answered with success and something else than was asked for', {
    retryable: true,
  })
}

function failure(answer: RegistryAnswer): SchemaRegistryError {
  const { status } = answer
  if (status === 401 || status === 403) {
    return new SchemaRegistryError(`it refuses the credentials (status ${status})`, { retryable: false })
  }
  const error = errorOf(answer)
  const says = error ? `: ${error.error_code} ${shortened(error.message ?? '')}` : ''
  const retryable = status >= 500 || passingStatuses.has(status)
  return new SchemaRegistryError(`it answered with status ${status}${says}`.trimEnd(), { retryable })
}

function errorOf({ body }: RegistryAnswer): z.output<typeof errorForm> | undefined {
  return errorForm.safeParse(parseJson(body)).data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** In one line, and none that fills a log. */
function shortened(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 200)
}
