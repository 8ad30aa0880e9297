/** The routes of the API. A request that gets here is admitted. */
import type { FastifyInstance } from 'fastify'
import { openApiPath } from '../../../contracts/api/conventions.ts'
import { invalidParameterBody } from '../../../contracts/api/errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { CachedEntries } from '../cache/response-cache.ts'
import { endpoints } from '../endpoints/all.ts'
import { type Endpoint, patternOf } from '../endpoints/endpoint.ts'
import type { OpenEndpoint } from '../endpoints/open.ts'
import { use } from '../maybe-promise.ts'
import type { DirectAnswers } from './direct-answers.ts'
import type { Publications } from './publications.ts'
import { servicePaths } from './refusals.ts'
import { queryOf, type Responder } from './responder.ts'

/** Adds the routes that read campaigns. */
export function addRoutes(
  app: FastifyInstance,
  open: (endpoint: Endpoint) => OpenEndpoint,
  cached: CachedEntries,
  responder: Responder,
  direct: Pick<DirectAnswers, 'learn'>,
): void {
  for (const endpoint of endpoints) {
    const { read, load } = open(endpoint)
    const route = patternOf(endpoint)
    app.get<{ Params: Record<string, string> }>(route, (request, reply) => {
      const asked = read(queryOf(request), request.params)
      if ('fault' in asked) {
        const { parameter, rule } = asked.fault
        responder.refuse(request, reply, 'invalid_parameter', { body: invalidParameterBody(parameter, rule) })
        return
      }
      const { key, parameters } = asked
      // These are logged even if the lookup fails. One in the path is not: it could be anything, even a secret.
      if (endpoint.parameters.path === undefined) request.parsedParameters = parameters
      return use(
        cached(request, key, owner => load(asked, owner)),
        entry => {
          const { raw, isDeprecated } = request
          request.parsedParameters = parameters
          direct.learn(raw.url ?? '', { route, key, parameters, isDeprecated })
          responder.send(request, reply, entry)
        },
      )
    })
  }
}

/** Adds the routes that need no key. Their requests are counted like all others. */
export function addPublicRoutes(
  app: FastifyInstance,
  responder: Responder,
  publications: () => Publications,
  { now }: Pick<Runtime, 'now'>,
): void {
  const config = { isPublic: true }
  for (const path of servicePaths) {
    app.get(path, { config }, (request, reply) => {
      responder.send(request, reply, publications().service(now()))
    })
  }
  app.get(openApiPath, { config }, (request, reply) => {
    responder.send(request, reply, publications().openApi(now()))
  })
}
