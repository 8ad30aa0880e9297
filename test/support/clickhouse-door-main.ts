/**
 * The ClickHouse door: chDB behind ClickHouse's HTTP interface, as a process of its own.
 *
 *     node test/support/clickhouse-door-main.ts --directory DATA [--port 8123] [--host 127.0.0.1]
 *         [--config-file CLICKHOUSE_CONFIG] [--exit-with-stdin]
 *
 * User and password come from CLICKHOUSE_USER and CLICKHOUSE_PASSWORD (default: `default`, empty). It prints one line of
 * JSON, {"url"}, once it takes requests, and ends on SIGTERM or SIGINT when the statements that run have ended.
 *
 * It is for tests and for machines without a ClickHouse server. What it has not: sessions, roles, multipart and native
 * compression, counts of written rows, and a way to end a statement but its own max_execution_time.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { type DoorEngine, openDoorEngine } from './clickhouse-door-engine.ts'
import { authenticate, type DoorCredentials, readDoorRequest } from './clickhouse-door-request.ts'
import { respond } from './clickhouse-door-response.ts'

// As the server: a URL may be a megabyte long. Its connections stay open for 10 s between two requests.
const urlBytesMax = 1_048_576
const keepAliveMs = 10_000

const { values } = parseArgs({
  options: {
    directory: { type: 'string' },
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8123' },
    'config-file': { type: 'string' },
    'exit-with-stdin': { type: 'boolean', default: false },
  },
})
if (values.directory === undefined) throw new Error('--directory is missing')
const credentials: DoorCredentials = {
  user: process.env.CLICKHOUSE_USER ?? 'default',
  password: process.env.CLICKHOUSE_PASSWORD ?? '',
}
const engine = openDoorEngine(values.directory, values['config-file'])
const server = createServer(
  { maxHeaderSize: urlBytesMax, keepAliveTimeout: keepAliveMs },
  (request, response) => {
    // A connection that was busy when the server closed is closed as soon as it has its answer.
    response.once('close', () => setImmediate(() => server.listening || server.closeIdleConnections()))
    handle(engine, credentials, request, response).catch(error => response.destroy(error))
  },
)
server.listen(Number(values.port), values.host)
await once(server, 'listening')
const { port } = server.address() as AddressInfo
process.stdout.write(`${JSON.stringify({ url: `http://${values.host}:${port}` })}\n`)

if (values['exit-with-stdin']) process.stdin.resume().once('end', stop)
process.once('SIGTERM', stop).once('SIGINT', stop)

async function stop(): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  await closed
  await engine.close()
  process.exit(0)
}

async function handle(
  engine: DoorEngine,
  credentials: DoorCredentials,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://door')
  if (url.pathname === '/ping' || (url.pathname === '/' && request.method === 'GET' && url.search === '')) {
    response.end('Ok.\n')
    return
  }
  if (url.pathname !== '/') {
    response.writeHead(404).end('There is no handle for this path\n')
    return
  }
  const plain = { queryId: randomUUID(), gzip: false, progressMs: undefined, monotonicMs }
  try {
    authenticate(request, url, credentials)
    const { statement, ...asked } = await readDoorRequest(request, url)
    const responder = respond(response, { ...plain, ...asked, queryId: asked.queryId ?? plain.queryId })
    await engine.run(statement).then(responder.answer, responder.fail)
  } catch (error) {
    respond(response, plain).fail(error)
  }
}

function monotonicMs(): number {
  return performance.now()
}
