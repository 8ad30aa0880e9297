/** The ops port's routes for rebuilds, which need the service's token, and a client for them. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { RebuildRefused } from '../rebuild/lease.ts'
import type { RebuildController, RebuildReport } from '../rebuild/rebuild-controller.ts'
import { RebuildInProgress } from '../rebuild/rebuild-log.ts'
import { isBearer } from '../shared/bearer.ts'

const requestSchema = z
  .strictObject({
    // `back` is what older commands call a rollback.
    kind: z.enum(['rebuild', 'rollback', 'back']).transform(kind => (kind === 'back' ? 'rollback' : kind)),
    fromTime: z.int().nullable(),
    isDry: z.boolean(),
    acceptsLoss: z.boolean(),
    ignoresDisk: z.boolean(),
  })
  .refine(
    ({ kind, fromTime, isDry }) => kind === 'rebuild' || (fromTime === null && !isDry),
    'a rollback has no from-time and no dry run',
  )

/** The answer of every route. */
interface Answer {
  latest: RebuildReport | null
}

/** `GET /rebuild`, `POST /rebuild` with a request, `POST /rebuild/abort`, `POST /rebuild/drop`. 409: refused, with the reason. */
export function addRebuildRoutes(ops: FastifyInstance, controller: RebuildController, token: string): void {
  ops.register(async routes => {
    routes.addHook('onRequest', async (request, reply) => {
      if (!isBearer(request.headers.authorization, token)) await reply.code(401).send({ error: 'no token' })
    })
    routes.setErrorHandler((error: Error, _request, reply) => {
      const isRefused = error instanceof RebuildRefused || error instanceof RebuildInProgress
      reply.code(isRefused ? 409 : 500).send({ error: error.message })
    })

    routes.get('/rebuild', async (): Promise<Answer> => ({ latest: (await controller.report()) ?? null }))
    routes.post('/rebuild', async (request, reply) => {
      const asked = requestSchema.safeParse(request.body)
      if (!asked.success) return reply.code(400).send({ error: z.prettifyError(asked.error) })
      return { latest: await controller.start(asked.data) } satisfies Answer
    })
    routes.post('/rebuild/abort', async (): Promise<Answer> => ({ latest: await controller.abort() }))
    routes.post('/rebuild/drop', async (): Promise<Answer> => ({ latest: await controller.drop() }))
  })
}

/** Calls a running service: method, path and body. */
export type AskService = <T>(method: 'GET' | 'POST', path: string, body?: object) => Promise<T>

/** A rebuild controller that calls a running service. */
export function remoteRebuildController(ask: AskService): RebuildController {
  async function latest(path: string, body?: object): Promise<RebuildReport> {
    const answer = await ask<Answer>('POST', path, body)
    if (!answer.latest) throw new Error(`the service reports no rebuild after ${path}`)
    return answer.latest
  }

  return {
    start: request => latest('/rebuild', request),
    report: async () => (await ask<Answer>('GET', '/rebuild')).latest ?? undefined,
    abort: () => latest('/rebuild/abort'),
    drop: () => latest('/rebuild/drop'),
  }
}
