/** The ceiling for the API bench: Fastify with routes that only send fixed bytes. */
import Fastify from 'fastify'
import type { ServerAnswer } from './api-service.ts'
import { benchInput, createCpuMeter, serveBench } from './bench-process.ts'

export interface BareInput {
  routes: { path: string; status: number; body: string }[]
}

export interface BareReady {
  url: string
}

const app = Fastify({ logger: false })
for (const { path, status, body } of benchInput<BareInput>().routes) {
  const bytes = Buffer.from(body)
  app.get(path, (_request, reply) => {
    if (status === 304) return reply.code(304).send()
    return reply.header('content-type', 'application/json; charset=utf-8').send(bytes)
  })
}
const ready: BareReady = { url: await app.listen({ host: '127.0.0.1', port: 0 }) }
const cpuMs = createCpuMeter()
serveBench({
  ready,
  answer: async (): Promise<ServerAnswer> => ({ cpuMs: cpuMs() }),
  close: () => app.close(),
})
