/** The portal's own files under `/static`: styles, scripts, icon. Nothing comes from other hosts. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { isNoneMatch } from '../../runtime/http/request-headers.ts'

const folder = fileURLToPath(new URL('../static/', import.meta.url))
const pico = fileURLToPath(import.meta.resolve('@picocss/pico/css/pico.classless.min.css'))

/** The clients to download. `npm run client:pack` makes the package. */
const clients = { 'pledgeview.py': 'contracts/api/client-python/', 'pledgeview-client.tgz': 'dist/' }
const offered = Object.entries(clients)
  .map(([name, place]) => ({
    name,
    file: fileURLToPath(new URL(`../../../${place}${name}`, import.meta.url)),
  }))
  .filter(({ file }) => existsSync(file))
/** Whether the package is there. */
export const hasPackage = offered.some(({ name }) => name.endsWith('.tgz'))

// A browser asks for each file again with each page: an old script must not run in a page of the next version. Mostly the answer is 304.
const cacheControl = 'public, max-age=0'

/** Serves the folder `static`. Its `portal.css` comes with Pico in front. */
export async function addStaticFiles(app: FastifyInstance): Promise<void> {
  await app.register(fastifyStatic, {
    ...{ root: folder, prefix: '/static/', index: false, dotfiles: 'deny' },
  })

  for (const { name, file } of offered) {
    app.get(`/static/${name}`, async (_request, reply) =>
      reply
        .header('cache-control', cacheControl)
        .header('content-disposition', `attachment; filename="${name}"`)
        .type('application/octet-stream')
        .send(await readFile(file)),
    )
  }

  // One file, not two: with Pico alone a browser asks for Pico's pictures, which the content security policy refuses.
  // It does so when something asks for a layout before the second file is there.
  const style = `${await readFile(pico, 'utf8')}\n${await readFile(`${folder}portal.css`, 'utf8')}`
  const etag = `"${createHash('sha256').update(style).digest('base64url')}"`
  app.get('/static/portal.css', (request, reply) => {
    reply.header('cache-control', cacheControl).header('etag', etag)
    if (isNoneMatch(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return reply.type('text/css; charset=utf-8').send(style)
  })
}
