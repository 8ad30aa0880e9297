/** Rebuilds on the ops port of an embedded service, for the bearer of its token, and from the other side of it. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { RebuildRefused } from '../rebuild/claim.ts'
import type { RebuildDesk, RebuildReport } from '../rebuild/desk.ts'
import { RebuildInProgress } from '../rebuild/rebuild-log.ts'
import { isBearer } from '../shared/bearer.ts'

const requestSchema = z
  .strictObject({
    kind: z.enum(['rebuild', 'back']),
    files: z.array(z.string()),
    fromTime: z.int().nullable(),
    isDry: z.boolean(),
    acceptsLoss: z.boolean(),
    ignoresDisk: z.boolean(),
  })
  .refine(({ kind, files, fromTime, isDry }) => {
    return kind === 'rebuild' || (files.length === 0 && fromTime === null && !isDry)
  }, 'a way back reads no files, begins at no time and is not dry')

/** What every route answers with. */
interface Answer {
  latest: RebuildReport | null
}

/** `GET /rebuild`, `POST /rebuild` with a request, `POST /rebuild/abort`, `POST /rebuild/drop`. 409: refused, and why. */
export function addRebuildRoutes(ops: FastifyInstance, desk: RebuildDesk, token: string): void {
  ops.register(async routes => {
    routes.addHook('onRequest', async (request, reply) => {
      if (!isBearer(request.headers.authorization, token)) await reply.code(401).send({ error: 'no token' })
    })
    routes.setErrorHandler((error: Error, _request, reply) => {
      const isRefused = error instanceof RebuildRefused || error instanceof RebuildInProgress
      reply.code(isRefused ? 409 : 500).send({ error: error.message })
    })

    routes.get('/rebuild', async (): Promise<Answer> => ({ latest: (await desk.report()) ?? null }))
    routes.post('/rebuild', async (request, reply) => {
      const asked = requestSchema.safeParse(request.body)
      if (!asked.success) return reply.code(400).send({ error: z.prettifyError(asked.error) })
      return { latest: await desk.start(asked.data) } satisfies Answer
    })
    routes.post('/rebuild/abort', async (): Promise<Answer> => ({ latest: await desk.abort() }))
    routes.post('/rebuild/drop', async (): Promise<Answer> => ({ latest: await desk.drop() }))
  })
}

/** Asks a running service: the method, the path, and what to send. */
export type AskService = <T>(method: 'GET' | 'POST', path: string, body?: object) => Promise<T>

/** The desk of a service that runs elsewhere. */
export function remoteDesk(ask: AskService): RebuildDesk {
  async function latest(path: string, body?: object): Promise<RebuildReport> {
    const answer = await ask<Answer>('POST', path, body)
    if (!answer.latest) throw new Error(`the service knows of no rebuild after ${path}`)
    return answer.latest
  }

  return {
    start: request => latest('/rebuild', request),
    report: async () => (await ask<Answer>('GET', '/rebuild')).latest ?? undefined,
    abort: () => latest('/rebuild/abort'),
    drop: () => latest('/rebuild/drop'),
  }
}
