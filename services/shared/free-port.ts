import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port of the loopback that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await once(server.close(), 'close')
  if (typeof address !== 'object' || address === null) throw new Error('a port of the loopback has no number')
  return address.port
}
