/**
 * Interprets a schema registry's answers. Pure.
 *
 * One distinction matters: the registry itself says that it has no such schema, with an error code of its own. A 404
 * from a proxy, or for a wrong path, is a failure like any other. So is a success status with a body that no registry
 * sends.
 *
 * Source: Confluent Schema Registry API, `GET /schemas/ids/{id}` and `POST /subjects/{subject}`.
 */
import { z } from 'zod'

/**
 * What a schema id means: a schema, or the reason why its values cannot be read (a text that continues `schema id 7
 * `).
 */
export type RegisteredSchema = { schema: object } | { reason: string }

export interface RegistryAnswer {
  status: number
  body: string
}

/** The registry failed or refused. `retryable`: whether the same request may succeed later. */
export class SchemaRegistryError extends Error {
  override name = 'SchemaRegistryError'
  readonly retryable: boolean

  constructor(message: string, { retryable }: { retryable: boolean }) {
    super(message)
    this.retryable = retryable
  }
}

/** The largest id of a registry: ids are positive signed 32-bit integers. */
export const schemaIdMax = 2 ** 31 - 1

const schemaForm = z.object({
  schema: z.string(),
  /** Registries that know only Avro leave it out, and most others do so for Avro. */
  schemaType: z.string().nullish(),
  references: z.array(z.unknown()).nullish(),
})
const idForm = z.object({ id: z.number().int().min(1).max(schemaIdMax) })
const errorForm = z.object({ error_code: z.number(), message: z.string().optional() })

const subjectNotFound = 40_401
const schemaNotFound = 40_403

// Failures that pass: overload, a restart, and a proxy without a server behind it.
const passingStatuses: ReadonlySet<number> = new Set([404, 408, 425, 429])

/** The schema of an id, or `undefined` if the registry says that it has none. Throws `SchemaRegistryError`. */
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
    return { reason: 'is a schema with references; only schemas without references are read' }
  }
  const parsed = parseJson(schema)
  // A primitive type may be its bare name, which is not an object.
  if (typeof parsed === 'string') return { schema: { type: parsed } }
  if (typeof parsed === 'object' && parsed !== null) return { schema: parsed }
  return { reason: 'is a schema that is not JSON' }
}

/** The id of a schema under a subject, or `undefined` if it has none yet. Throws `SchemaRegistryError`. */
export function readId(answer: RegistryAnswer): number | undefined {
  if (answer.status === 200) return readForm(idForm, answer).id
  const code = answer.status === 404 ? errorOf(answer)?.error_code : undefined
  if (code === subjectNotFound || code === schemaNotFound) return undefined
  throw failure(answer)
}

function readForm<T>(form: z.ZodType<T>, { body }: RegistryAnswer): T {
  const read = form.safeParse(parseJson(body))
  if (read.success) return read.data
  throw new SchemaRegistryError('it answered with a success status and an unexpected body', {
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

/** In one line, and short enough for a log. */
function shortened(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 200)
}
