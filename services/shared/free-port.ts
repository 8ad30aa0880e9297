import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ports that systems give to connections and to whoever asks for any port (from 32768 on Linux). A port from there
// may be in use as soon as it is free for a moment: between the choice and its use, or while a server is restarted on it.
const portMin = 20_000
const ports = 12_000
let tried = Math.floor(Math.random() * ports)

/** A port of the loopback that nothing listens on. Each call returns another one. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ports; attempt++) {
    const port = portMin + (tried++ % ports)
    if (await isFree(port)) return port
  }
  throw new Error('no port of the loopback is free')
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  await once(server.close(), 'close')
  return true
}
