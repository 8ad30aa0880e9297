/** A schema registry in this process that follows the API, and breaks it on a test's request. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { compileSchema } from '../../../contracts/events/avro-types.ts'
import { SchemaRegistryError } from '../../../services/log/registry/answers.ts'
import { startMisbehavingServer } from './misbehaving-server.ts'

export interface StoredSchema {
  schema: string
  schemaType?: string
  references?: object[]
}

/** Answers a request in place of the registry. Returns false to let the registry answer. */
export type Misbehaviour = (response: ServerResponse, call: string) => boolean

export interface FakeSchemaRegistry {
  url: string
  /** Every request: `GET /schemas/ids/7`. */
  calls: string[]
  /** The headers of the last request. */
  headers(): IncomingHttpHeaders
  /** Puts a schema under an id. */
  put(schemaId: number, stored: StoredSchema): void
  misbehave(misbehaviour: Misbehaviour | undefined): void
  close(): Promise<void>
}

interface Reply {
  status: number
  body: object
}

/** `firstId` is the first id that it gives. */
export async function startFakeSchemaRegistry({
  firstId = 1,
  tls,
}: {
  firstId?: number
  tls?: { key: string; cert: string }
} = {}): Promise<FakeSchemaRegistry> {
  const byId = new Map<number, StoredSchema>()
  const subjects = new Map<string, number[]>()
  const calls: string[] = []
  let misbehaviour: Misbehaviour | undefined

  function idOf(stored: StoredSchema, ids: Iterable<number>): number | undefined {
    return [...ids].find(id => JSON.stringify(byId.get(id)) === JSON.stringify(stored))
  }

  function register(subject: string, stored: StoredSchema): Reply {
    if (!isValid(stored)) return { status: 422, body: { error_code: 42201, message: 'Invalid schema' } }
    const versions = subjects.get(subject) ?? []
    const id = idOf(stored, byId.keys()) ?? Math.max(firstId - 1, ...byId.keys()) + 1
    byId.set(id, stored)
    subjects.set(subject, [...new Set([...versions, id])])
    return { status: 200, body: { id } }
  }

  function lookUp(subject: string, stored: StoredSchema): Reply {
    const versions = subjects.get(subject)
    if (!versions) return notFound(40401, `Subject '${subject}' not found.`)
    const id = idOf(stored, versions)
    if (id === undefined) return notFound(40403, 'Schema not found')
    return { status: 200, body: { subject, id, version: versions.indexOf(id) + 1, ...stored } }
  }

  function replyTo(call: string, body: string): Reply {
    const [, id] = /^GET \/schemas\/ids\/(\d+)$/.exec(call) ?? []
    if (id !== undefined) {
      const stored = byId.get(Number(id))
      return stored ? { status: 200, body: stored } : notFound(40403, 'Schema not found')
    }
    const [, subject, versions] = /^POST \/subjects\/([^/]+)(\/versions)?$/.exec(call) ?? []
    if (subject === undefined) return notFound(404, 'HTTP 404 Not Found')
    const stored = JSON.parse(body) as StoredSchema
    return (versions ? register : lookUp)(decodeURIComponent(subject), stored)
  }

  const server = await startMisbehavingServer(
    [
      (response, { body }) => {
        const call = `${response.req.method} ${response.req.url}`
        calls.push(call)
        if (misbehaviour?.(response, call)) return
        const reply = replyTo(call, body)
        answer(response, reply.status, JSON.stringify(reply.body))
      },
    ],
    tls,
  )
  return {
    url: server.url,
    calls,
    headers: () => server.requests.at(-1)?.headers ?? {},
    put: (schemaId, stored) => byId.set(schemaId, stored),
    misbehave(next) {
      misbehaviour = next
    },
    close: server.close,
  }
}

/** The registry error with which the work fails. */
export async function failureOf(work: Promise<unknown>): Promise<SchemaRegistryError> {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof SchemaRegistryError)) throw new Error(`not a failure of the registry: ${error}`)
  return error
}

/** A misbehaviour: the same answer to every request. */
export function alwaysAnswers(status: number, body = ''): Misbehaviour {
  return response => answer(response, status, body)
}

function answer(response: ServerResponse, status: number, body: string): true {
  response.writeHead(status, { 'content-type': 'application/vnd.schemaregistry.v1+json' })
  response.end(body)
  return true
}

// The tests do not need checks of schemas that are not Avro, or not complete.
function isValid({ schema, schemaType, references }: StoredSchema): boolean {
  if (schemaType !== undefined || references !== undefined) return true
  try {
    compileSchema(JSON.parse(schema) as object)
    return true
  } catch {
    return false
  }
}

function notFound(error_code: number, message: string): Reply {
  return { status: 404, body: { error_code, message } }
}
