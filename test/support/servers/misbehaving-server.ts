/** A server that answers, or fails to answer, as a test tells it to. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'

/** The behaviour for one request. The body has been read when it is called. */
export type Behaviour = (response: ServerResponse, request: SeenRequest) => void

interface SeenRequest {
  parameters: URLSearchParams
  headers: IncomingMessage['headers']
  body: string
}

export type MisbehavingServer = Awaited<ReturnType<typeof startMisbehavingServer>>

/** The n-th request gets the n-th behaviour, and all that follow the last one. */
export async function startMisbehavingServer(
  behaviours: readonly [Behaviour, ...Behaviour[]],
  tls?: { key: string; cert: string },
) {
  const requests: SeenRequest[] = []
  const connections = { opened: 0, open: 0, openMost: 0 }
  const sockets = new Set<Socket>()

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const behaviour = behaviours[Math.min(requests.length, behaviours.length - 1)] ?? behaviours[0]
    const seen = {
      parameters: new URL(request.url ?? '', 'http://server').searchParams,
      headers: request.headers,
      body: '',
    }
    requests.push(seen)
    seen.body = await text(request)
    behaviour(response, seen)
  }

  const onAnyRequest = (request: IncomingMessage, response: ServerResponse): void => {
    onRequest(request, response).catch(() => response.destroy())
  }
  const server = tls ? createTlsServer(tls, onAnyRequest) : createServer(onAnyRequest)
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket)
    connections.opened++
    connections.open++
    connections.openMost = Math.max(connections.openMost, connections.open)
    socket.on('close', () => {
      sockets.delete(socket)
      connections.open--
      server.emit('gone')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    /** `http(s)://127.0.0.1:port` */
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests: requests as readonly SeenRequest[],
    /** Connections that were opened, and those that are open. */
    connections,
    /** Resolves when no connection is open. */
    async whenNoneIsOpen(): Promise<void> {
      while (connections.open > 0) await once(server, 'gone')
    },
    async close(): Promise<void> {
      server.close()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}

/** Answers with rows of JSON, or with any other text. */
export function answers(body: string, headers: Record<string, string> = {}, status = 200): Behaviour {
  return response => response.writeHead(status, headers).end(body)
}

/** ClickHouse's own error. */
export function fails(code: number, type: string, message: string, status = 500): Behaviour {
  return answers(exceptionText(code, type, message), { 'X-ClickHouse-Exception-Code': String(code) }, status)
}

export function exceptionText(code: number, type: string, message: string): string {
  return `Code: ${code}. DB::Exception: ${message} (${type}) (version 26.7.2.1 (official build))\n`
}

/** Cuts the connection before anything of the answer is sent. */
export const cuts: Behaviour = response => response.socket?.destroy()

/** Sends the headers and half of the body, and then cuts the connection. */
export const cutsHalfway: Behaviour = response => {
  response.writeHead(200, { 'Content-Length': '100' })
  response.write('{"n":1}\n', () => response.socket?.destroy())
}

/** Sends the headers and half of the body, and then nothing any more. */
export const stopsHalfway: Behaviour = response => {
  response.writeHead(200, { 'Content-Length': '100' })
  response.write('{"n":1}\n')
}

/** Never answers. */
export const isSilent: Behaviour = () => {}
