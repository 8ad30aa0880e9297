import type { FastifyInstance } from 'fastify'

const graceMs = 1_000

/**
 * Closes a server. Running requests may finish for a second, then their connections are cut. Otherwise one client
 * that never ends its request would hold up the whole process.
 */
export async function closeServer(server: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => server.server.closeAllConnections(), graceMs)
  try {
    await server.close()
  } finally {
    clearTimeout(cut)
  }
}
