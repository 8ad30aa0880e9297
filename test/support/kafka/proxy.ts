/** A TCP proxy between a client and a service that simulates network faults: it holds the answers, or cuts everything, or a request. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** After these bytes of requests, of all connections together, the connection is closed as by a client that disconnects, or reset as by one that is killed. */
interface RequestLimit {
  bytesMax: number
  ending: 'end' | 'reset'
}

type Pair = Record<'client' | 'service', Socket>

/** Without a port, the system chooses one. */
export async function startProxy({
  port = 0,
  targetPort,
  limit,
}: {
  port?: number
  targetPort: number
  limit?: RequestLimit
}) {
  const pairs = new Set<Pair>()
  let isHolding = false
  let isCut = false
  let passed = 0

  const server = createServer(client => {
    if (isCut) {
      client.destroy()
      return
    }
    const service = connect(targetPort, '127.0.0.1')
    const pair: Pair = { client, service }
    pairs.add(pair)
    const drop = (): void => {
      pairs.delete(pair)
      client.destroy()
      service.destroy()
    }
    for (const socket of [client, service]) socket.on('error', drop).on('close', drop)
    if (limit) passSome(pair, limit)
    else client.pipe(service)
    service.pipe(client)
    if (isHolding) hold(pair)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  function passSome({ client, service }: Pair, { bytesMax, ending }: RequestLimit): void {
    client.on('data', chunk => {
      const piece = chunk.subarray(0, bytesMax - passed)
      passed += piece.length
      service.write(piece)
      if (passed < bytesMax) return
      client.pause()
      // The bytes so far must arrive first, or fewer than that would be forwarded.
      service.write('', () => {
        if (ending === 'end') service.end()
        else service.resetAndDestroy()
        client.resetAndDestroy()
      })
    })
  }

  function hold({ service, client }: Pair): void {
    service.unpipe(client)
    service.pause()
  }

  /** Cuts every connection, drops what was held, and accepts no connection until `release`. */
  function cut(): void {
    isCut = true
    for (const { client, service } of pairs) {
      client.destroy()
      service.destroy()
    }
  }

  return {
    /** Its port on 127.0.0.1. */
    port: (server.address() as AddressInfo).port,
    /** From now on the service's answers do not arrive. Requests still do. */
    holdAnswers(): void {
      isHolding = true
      for (const pair of pairs) hold(pair)
    },
    /** Delivers what was held, and lets everything through again. */
    release(): void {
      isHolding = false
      isCut = false
      for (const { service, client } of pairs) service.pipe(client)
    },
    cut,
    /** The bytes of requests that `limit` let through. */
    passed: () => passed,
    async close(): Promise<void> {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
