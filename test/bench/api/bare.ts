/** The ceiling for the API bench: Fastify with routes that only send fixed bytes, with as many headers as the service does. */
import Fastify from 'fastify'
import { benchInput, serveBench } from '../bench-process.ts'

export interface BareInput {
  routes: { path: string; status: number; body: string; headers: Record<string, string> }[]
}

export interface BareReady {
  url: string
}

const app = Fastify({ logger: false })
for (const { path, status, body, headers } of benchInput<BareInput>().routes) {
  const bytes = Buffer.from(body)
  app.get(path, (_request, reply) => {
    reply.code(status).headers(headers)
    return status === 304 ? reply.send() : reply.send(bytes)
  })
}
const ready: BareReady = { url: await app.listen({ host: '127.0.0.1', port: 0 }) }
serveBench({ ready, close: () => app.close() })
