/** A proxy that forwards a limited number of bytes of each connection's requests, and then cuts or holds the connection. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CuttingProxy {
  /** `http://127.0.0.1:port` */
  url: string
  /** The bytes of requests that were forwarded. */
  passed(): number
  /** Resolves when a connection has reached its limit. */
  atLimit: Promise<void>
  close(): Promise<void>
}

export interface CutOptions {
  /** Per connection. */
  bytesMax: number
  /** `end`: closed as by a client that disconnects; `reset`: as by a killed client; `hold`: forwards nothing more. */
  ending: 'end' | 'reset' | 'hold'
}

export async function startCuttingProxy(
  url: string,
  { bytesMax, ending }: CutOptions,
): Promise<CuttingProxy> {
  const target = Number(new URL(url).port)
  const sockets = new Set<Socket>()
  const limit = Promise.withResolvers<void>()
  let passed = 0

  function onConnection(outer: Socket): void {
    const inner = connect({ host: '127.0.0.1', port: target })
    let left = bytesMax
    for (const socket of [outer, inner]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    inner.on('data', chunk => outer.write(chunk)).on('close', () => outer.destroy())
    outer.on('close', () => inner.destroy())
    outer.on('data', chunk => {
      const piece = chunk.subarray(0, left)
      left -= piece.length
      passed += piece.length
      inner.write(piece)
      if (left > 0) return
      outer.pause()
      // The bytes so far must arrive first, or fewer than that would be forwarded.
      inner.write('', () => {
        limit.resolve()
        if (ending === 'end') inner.end()
        if (ending === 'reset') inner.resetAndDestroy()
        if (ending !== 'hold') outer.resetAndDestroy()
      })
    })
  }

  const server = createServer(onConnection)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed: () => passed,
    atLimit: limit.promise,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
