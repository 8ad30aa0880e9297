/** The routes of the API. A request that gets here is admitted. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { basePath, openApiPath } from '../../../contracts/api/conventions.ts'
import { invalidParameterBody } from '../../../contracts/api/errors.ts'
import { parseListQuery } from '../../../contracts/api/parameters.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { CampaignReader } from '../campaigns/campaign-reader.ts'
import { listKey } from '../lists/campaign-lists.ts'
import { type MaybePromise, use } from '../maybe-promise.ts'
import { statsKey } from '../stats/stats-ahead.ts'
import type { CachedEntries } from './cached-entries.ts'
import type { DirectAnswers } from './direct-answers.ts'
import type { Publications } from './publications.ts'
import { servicePaths } from './refusals.ts'
import { queryOf, type Responder } from './responder.ts'

export interface RouteDependencies {
  reader: CampaignReader
  stats: () => Promise<CacheEntry>
  cached: CachedEntries
  responder: Responder
  direct: Pick<DirectAnswers, 'learn'>
}

/** Adds the routes that read campaigns. */
export function addRoutes(
  app: FastifyInstance,
  { reader, stats, cached, responder, direct }: RouteDependencies,
): void {
  /**
   * Answers with the entry of this key. Once the entry is found, the parameters go to the log, and later requests for this target
   * can be answered directly.
   */
  function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    { key, parameters }: { key: string; parameters: object | null },
    load: (owner: string) => Promise<CacheEntry>,
  ): MaybePromise<void> {
    return use(cached(request, key, load), entry => {
      const { raw, isDeprecated, routeOptions } = request
      request.parsedParameters = parameters
      direct.learn(raw.url ?? '', { route: routeOptions.url ?? '', key, parameters, isDeprecated })
      responder.send(request, reply, entry)
    })
  }

  app.get(`${basePath}/projects`, (request, reply) => {
    const parsed = parseListQuery(queryOf(request))
    if ('fault' in parsed) {
      const { parameter, rule } = parsed.fault
      responder.refuse(request, reply, 'invalid_parameter', invalidParameterBody(parameter, rule))
      return
    }
    const { parameters } = parsed
    // These are logged even if the lookup fails.
    request.parsedParameters = parameters
    const key = `projects ${parameters.limit} ${parameters.offset} ${listKey(parameters)}`
    return answer(request, reply, { key, parameters }, owner => reader.projects(parameters, owner))
  })

  app.get<{ Params: { slug: string } }>(`${basePath}/projects/:slug`, (request, reply) => {
    const { slug } = request.params
    // The path parameter is not logged before the lookup: it could be anything, even a secret.
    const parameters = { slug }
    return answer(request, reply, { key: `project ${slug}`, parameters }, () => reader.projectDetail(slug))
  })

  app.get(`${basePath}/stats`, (request, reply) =>
    answer(request, reply, { key: statsKey, parameters: null }, stats),
  )
}

/** Adds the routes that need no key. Their requests are counted like all others. */
export function addPublicRoutes(
  app: FastifyInstance,
  {
    responder,
    publications,
    now,
  }: { responder: Responder; publications: () => Publications; now: () => number },
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
