/**
 * An HTTP proxy before ClickHouse that tells statements apart. It can delay a statement, before it runs or after, and tells
 * whether it was sent. A statement that has arrived runs even if its sender is gone, as in any network.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Obstacles, TablesCall } from '../clickhouse/faulty-tables.ts'

/** What delays a statement, and what is changed in it. */
export interface ProxyObstacles extends Obstacles {
  /** Returns the text that ClickHouse gets. Only for statements whose text is in the body, so not for inserts. */
  rewrite?: (call: TablesCall) => string
}

export async function startTablesProxy(target: string) {
  const obstacles = new Set<ProxyObstacles>()

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const call = callOf(new URL(incoming.url ?? '/', target), body)
    for (const { before } of obstacles) await before?.(call)
    const rewrite = call.kind === 'insert' ? undefined : [...obstacles].find(one => one.rewrite)?.rewrite
    const answer = await forward(target, incoming, rewrite ? Buffer.from(rewrite(call)) : body)
    const answerBody = await buffer(answer)
    for (const { after } of obstacles) await after?.(call)
    const { 'transfer-encoding': _, connection: __, ...headers } = answer.headers
    outgoing.writeHead(answer.statusCode ?? 502, headers).end(answerBody)
  }

  const server = createServer({ maxHeaderSize: 1_048_576 }, (incoming, outgoing) => {
    // If ClickHouse or the sender is gone, the connection is cut, as it would be without a proxy.
    handle(incoming, outgoing).catch(() => outgoing.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Applies from now on, until the returned function is called. */
    obstruct(more: ProxyObstacles): () => void {
      obstacles.add(more)
      return () => obstacles.delete(more)
    },
    async close(): Promise<void> {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** The text of an insert is in the URL, before its rows. The text of any other statement is in the body. */
function callOf(url: URL, body: Buffer): TablesCall {
  const insert = url.searchParams.get('query')
  const text = insert ?? body.toString()
  const parameters = [...url.searchParams].filter(([name]) => name.startsWith('param_'))
  return {
    kind: insert === null ? (text.includes('INSERT INTO') ? 'run' : 'rows') : 'insert',
    text,
    query_params: Object.fromEntries(parameters.map(([name, value]) => [name.slice('param_'.length), value])),
  }
}

async function forward(target: string, incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
  const { connection: _, 'transfer-encoding': __, ...headers } = incoming.headers
  const outgoing = send(new URL(incoming.url ?? '/', target), {
    method: incoming.method ?? 'POST',
    headers: { ...headers, 'content-length': body.length },
  })
  outgoing.end(body)
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  return answer
}
