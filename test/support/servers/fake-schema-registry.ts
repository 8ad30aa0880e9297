/** A schema registry in this process that takes every schema, and breaks its API on a test's request. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { SchemaRegistryError } from '../../../services/log/registry/answers.ts'
import { startMisbehavingServer } from './misbehaving-server.ts'

export interface StoredSchema {
  schema: string
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

const notFound: Reply = { status: 404, body: { error_code: 40403, message: 'Schema not found' } }

/** `firstId` is the first id that it gives. */
export async function startFakeSchemaRegistry({
  firstId = 1,
  tls,
}: {
  firstId?: number
  tls?: { key: string; cert: string }
} = {}): Promise<FakeSchemaRegistry> {
  const byId = new Map<number, StoredSchema>()
  const calls: string[] = []
  let misbehaviour: Misbehaviour | undefined

  function register(stored: StoredSchema): Reply {
    const isSame = (id: number) => JSON.stringify(byId.get(id)) === JSON.stringify(stored)
    const id = [...byId.keys()].find(isSame) ?? Math.max(firstId - 1, ...byId.keys()) + 1
    byId.set(id, stored)
    return { status: 200, body: { id } }
  }

  function replyTo(call: string, body: string): Reply {
    const [, id] = /^GET \/schemas\/ids\/(\d+)$/.exec(call) ?? []
    if (id !== undefined) {
      const stored = byId.get(Number(id))
      return stored ? { status: 200, body: stored } : notFound
    }
    // A client that looks for the id of a schema registers it then, and gets the one that it has.
    return /^POST .*\/versions$/.test(call) ? register(JSON.parse(body)) : notFound
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
