/** The latest whole copy, for people who are signed in: a section of /access, and its files. */
import type { FastifyInstance } from 'fastify'
import { createDownloads, defaultBounds } from '../../exports/downloads.ts'
import { type ExportFile, exportNames, latestManifest, type Manifest } from '../../exports/latest.ts'
import { ClientGoneError, OverloadedError } from '../../runtime/async/fair-turns.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { megabytes } from '../../runtime/progress.ts'
import type { Portal } from '../app.ts'
import { type Html, html } from '../html/html.ts'
import { count, moment } from '../html/words.ts'
import { PageError } from '../http/pages.ts'
import { signedIn } from '../http/session-hook.ts'

const folder = '/access/copies'
const formats: Readonly<Record<ExportFile, string>> = {
  'campaigns.ndjson.gz': 'NDJSON, gzipped',
  'campaigns.parquet': 'Parquet',
}

/** The manifest of the latest copy; undefined if there is none, or if it cannot be read. The rest of the page is shown all the same. */
export async function copyOf({ options, logger }: Pick<Portal, 'options' | 'logger'>) {
  if (options.PLEDGEVIEW_EXPORT_DIR === undefined) return undefined
  return latestManifest(options.PLEDGEVIEW_EXPORT_DIR).catch(error => {
    logger.warn({ error: messageOf(error) }, 'the latest whole copy cannot be read')
    return undefined
  })
}

export function copySection({ campaigns, as_of, files }: Manifest): Html {
  return html`<section aria-labelledby="copies">
<h2 id="copies">Everything at once</h2>
<p>All ${count(campaigns)} public campaigns with their texts and rewards, as of ${moment(Date.parse(as_of))}. Programs read the same files <a href="/reference#getLatestExport">with a key</a>.</p>
<ul>${files.map(({ name, bytes }) => html`<li><a href="${folder}/${name}" download>${formats[name]}</a> (${megabytes(bytes)})</li>`)}</ul>
</section>`
}

export function addCopyRoutes(pages: FastifyInstance, { options, sessions, cookies }: Portal): void {
  // Each look reads the store and the tables.
  const send = createDownloads(options.PLEDGEVIEW_EXPORT_DIR, { ...defaultBounds, lookMs: 10_000 })
  for (const name of exportNames) {
    pages.get(`${folder}/${name}`, async (request, reply) => {
      const begin = () => {
        reply.hijack()
        return reply.getHeaders() as Record<string, string>
      }
      const owner = signedIn(request).account_id
      const isAllowed = async () =>
        (await sessions.accountOf(cookies.session.read(request) ?? '')) !== undefined
      const asked = { request: request.raw, response: reply.raw, name, owner, isAllowed, begin }
      try {
        const done = await send(asked)
        if (done === 'none') throw new PageError(404, 'There is no whole copy at the moment.')
        if (done !== 'sent') {
          reply.header('content-range', `bytes */${done.unsatisfiable}`)
          throw new PageError(416, 'The file is shorter than that.')
        }
      } catch (error) {
        if (error instanceof OverloadedError)
          throw new PageError(429, 'Too many downloads at once. Try again when one has ended.', {
            retryAfterSeconds: 10,
          })
        if (!(error instanceof ClientGoneError)) throw error
        reply.hijack()
        reply.raw.destroy()
      }
    })
  }
}
