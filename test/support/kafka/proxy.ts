/** A TCP proxy between a client and a service that simulates network faults: it holds the answers, or cuts everything. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  /** Its port on 127.0.0.1. */
  port: number
  /** From now on the service's answers do not arrive. Requests still do. */
  holdAnswers(): void
  /** Delivers what was held, and lets everything through again. */
  release(): void
  /** Cuts every connection, drops what was held, and accepts no connection until `release`. */
  cut(): void
  close(): Promise<void>
}

interface Pair {
  client: Socket
  service: Socket
}

/** Without a port, the system chooses one. */
export async function startProxy({
  port = 0,
  targetPort,
}: {
  port?: number
  targetPort: number
}): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let isHolding = false
  let isCut = false

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
    client.pipe(service)
    service.pipe(client)
    if (isHolding) hold(pair)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  function hold({ service, client }: Pair): void {
    service.unpipe(client)
    service.pause()
  }

  function cut(): void {
    isCut = true
    for (const { client, service } of pairs) {
      client.destroy()
      service.destroy()
    }
  }

  return {
    port: (server.address() as AddressInfo).port,
    holdAnswers() {
      isHolding = true
      for (const pair of pairs) hold(pair)
    },
    release() {
      isHolding = false
      isCut = false
      for (const { service, client } of pairs) service.pipe(client)
    },
    cut,
    async close() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
