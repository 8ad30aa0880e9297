import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Linux gives the ports from 32768 on to connections, and to programs that ask for any port. It may take such a port between our
// choice and its use, or while a server restarts on it. So ours are below.
const portMin = 20_000
const ports = 12_000
let tried = Math.floor(Math.random() * ports)

/**
 * A TCP port of the loopback that nothing listens on. Each call returns another one, in every process of this machine: the
 * process that asked keeps the UDP port of the same number as a mark until it ends.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ports; attempt++) {
    const port = portMin + (tried++ % ports)
    const unmark = await mark(port)
    if (!unmark) continue
    if (await isFree(port)) return port
    unmark()
  }
  throw new Error('no port of the loopback is free')
}

/** Resolves with what takes the mark away, or with nothing if another process has it. */
async function mark(port: number): Promise<(() => void) | undefined> {
  const socket = createSocket('udp4').unref()
  try {
    const bound = once(socket, 'listening')
    socket.bind({ port, address: '127.0.0.1', exclusive: true })
    await bound
  } catch {
    return undefined
  }
  // Nobody sends anything here, and a mark that fails later is no reason to end.
  socket.on('error', () => {})
  return () => socket.close()
}

/** Whether a server may listen on this port of 127.0.0.1 now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  await once(server.close(), 'close')
  return true
}
