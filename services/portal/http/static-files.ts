/** The portal's own files under `/static`: styles, scripts, icon. Nothing comes from other hosts. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'

const folder = fileURLToPath(new URL('../static/', import.meta.url))
const pico = fileURLToPath(import.meta.resolve('@picocss/pico/css/pico.classless.min.css'))

// A file that changed with a new version is there within this time.
const maxAgeSeconds = 300

/** Serves the folder `static`, and Pico as `/static/pico.css`. */
export async function addStaticFiles(app: FastifyInstance): Promise<void> {
  const headers = {
    cacheControl: true,
    maxAge: maxAgeSeconds * 1000,
    index: false,
    dotfiles: 'deny',
  } as const
  await app.register(fastifyStatic, { root: folder, prefix: '/static/', ...headers })
  app.get('/static/pico.css', (_request, reply) => reply.sendFile('pico.classless.min.css', dirname(pico)))
}
