/** The routes of the files of whole copies. Their answers are streams, so no cache has them. */
import type { FastifyInstance } from 'fastify'
import { rangeBody } from '../../../contracts/api/errors.ts'
import type { Download, SendDownload } from '../../exports/downloads.ts'
import { ClientGoneError } from '../../runtime/async/fair-turns.ts'
import type { KeyRing } from '../auth/key-ring.ts'
import { NotFoundError, patternOf } from '../endpoints/endpoint.ts'
import { downloads } from '../endpoints/exports.ts'
import type { Responder } from './responder.ts'

export function addDownloads(
  app: FastifyInstance,
  send: SendDownload,
  responder: Pick<Responder, 'headersOf' | 'refuse'>,
  keyRing: Pick<KeyRing, 'lookup'>,
): void {
  for (const download of downloads) {
    app.route({
      method: ['GET', 'HEAD'],
      url: patternOf(download),
      async handler(request, reply) {
        const key = request.admission?.apiKey?.key ?? ''
        const asked: Download = {
          request: request.raw,
          response: reply.raw,
          name: download.file,
          owner: key,
          isAllowed: () => keyRing.lookup(key) !== undefined,
          begin() {
            reply.hijack()
            return responder.headersOf(request, reply)
          },
        }
        try {
          const done = await send(asked)
          if (done === 'none') throw new NotFoundError()
          if (done === 'sent') return
          reply.header('content-range', `bytes */${done.unsatisfiable}`)
          responder.refuse(request, reply, rangeBody, 416)
        } catch (error) {
          // The log has it from the connection.
          if (!(error instanceof ClientGoneError && reply.sent)) throw error
        }
      },
    })
  }
}
