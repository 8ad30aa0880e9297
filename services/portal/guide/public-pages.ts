/** Pages that need no account (beside /data and /status): what the service is, the guide, the reference, and versions. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { type PublishedDocument, publishedOpenApi } from '../../../contracts/api/published-openapi.ts'
import { versions } from '../../../contracts/api/versions.ts'
import type { Portal } from '../app.ts'
import { hasPackage } from '../http/static-files.ts'
import { changesContent, consumerReleases } from './changes.ts'
import { guideContent } from './guide.ts'
import { landingContent } from './landing.ts'
import type { Document } from './openapi.ts'
import { referenceContent } from './reference.ts'

export function addPublicPages(app: FastifyInstance, { liveState, options }: Portal): void {
  const { apiUrl, portalUrl } = options
  const published = publishedOpenApi(JSON.parse(textOf('contracts/api/openapi.json')) as PublishedDocument, {
    apiUrl,
    portalUrl,
  })
  const openApiText = JSON.stringify(published, null, 2)
  // The part of it that pages show.
  const document = JSON.parse(openApiText) as Document
  app.get('/', async (request, reply) => {
    const isSignedIn = request.account !== undefined
    const content = landingContent({ live: await liveState(), apiUrl, isSignedIn, config: options })
    return reply.page({
      title: 'Pledgeview: public campaigns as data',
      description:
        'A free, read-only API of public crowdfunding campaigns: funding totals, reward tiers and statistics as JSON.',
      path: '/',
      content,
    })
  })
  // These pages are the same for everybody and do not change while the process runs.
  const pages = [
    {
      path: '/docs',
      title: 'Guide',
      description:
        'How to make a first call, read lists, keep a copy that misses no change, and what to do for each error.',
      content: guideContent({ apiUrl, hasPackage, document, config: options }),
    },
    {
      path: '/reference',
      title: 'Reference',
      description:
        'Every request, parameter and field of the API. Send requests from your browser, or get them as curl lines.',
      content: referenceContent({ document, apiUrl }),
      scripts: ['try-it.js'],
    },
    {
      path: '/changes',
      title: 'Versions and changes',
      description: 'Versions of the API, and what changed for its consumers.',
      content: changesContent({ versions, releases: consumerReleases(textOf('CHANGELOG.md')) }),
    },
  ]
  for (const page of pages) app.get(page.path, (_request, reply) => reply.page(page))
  // The same document as at the API, for readers and tools that are here.
  app.get('/openapi.json', (_request, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .header('cache-control', 'public, max-age=300')
      .send(openApiText),
  )
}

/** A file of the program, by its path from the root. */
function textOf(path: string): string {
  return readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
}
