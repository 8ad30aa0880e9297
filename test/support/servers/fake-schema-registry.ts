/** A schema registry in this process that breaks its API on a test's request. What a whole one answers: services/schema-registry.ts. */
import type { ServerResponse } from 'node:http'
import { SchemaRegistryError } from '../../../services/log/registry/answers.ts'
import { startMisbehavingServer } from './misbehaving-server.ts'

/** Answers a request in place of the registry. Returns false to let the registry answer. */
type Misbehaviour = (response: ServerResponse, call: string) => boolean

export type FakeSchemaRegistry = Awaited<ReturnType<typeof startFakeSchemaRegistry>>

// The first id that it gives is none of the fixed ones.
const firstId = 41

export async function startFakeSchemaRegistry(tls?: { key: string; cert: string }) {
  /** The body of each answer, by the id of the schema. */
  const bodies = new Map<number, string>()
  const calls: string[] = []
  let misbehaviour: Misbehaviour | undefined

  function register(body: string): number {
    const known = [...bodies].find(([, other]) => other === body)
    const id = known?.[0] ?? Math.max(firstId - 1, ...bodies.keys()) + 1
    bodies.set(id, body)
    return id
  }

  function reply(response: ServerResponse, call: string, body: string): true {
    const [, id] = /^GET \/schemas\/ids\/(\d+)$/.exec(call) ?? []
    const stored = bodies.get(Number(id))
    if (stored !== undefined) return answer(response, 200, stored)
    if (call.endsWith('/versions')) return answer(response, 200, JSON.stringify({ id: register(body) }))
    return answer(response, 404, JSON.stringify({ error_code: 40403, message: 'Schema not found' }))
  }

  const server = await startMisbehavingServer(
    [
      (response, { body }) => {
        const call = `${response.req.method} ${response.req.url}`
        calls.push(call)
        if (!misbehaviour?.(response, call)) reply(response, call, body)
      },
    ],
    tls,
  )
  return {
    url: server.url,
    /** Every request: `GET /schemas/ids/7`. */
    calls,
    /** The headers of the last request. */
    headers: () => server.requests.at(-1)?.headers ?? {},
    /** Puts a schema under an id. */
    put: (schemaId: number, stored: { schema: string }) => bodies.set(schemaId, JSON.stringify(stored)),
    misbehave(next: Misbehaviour | undefined) {
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
