/**
 * The working directory of the child server. It is removed before the ports open.
 *
 * Called like `clickhouse local`, ClickHouse lets each of its users read and write the files of this account: with
 * the function `file`, which needs no grant, and with formats that take a file name as a setting. All of them first
 * ask for the working directory, and fail if there is none (test/integration/clickhouse-server/analyst-rights.test.ts).
 * ClickHouse itself does not start without one. So the session that opens the ports first fetches a page from here.
 * The request shows that ClickHouse has started, and it is answered after the directory has been removed.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface WorkingDirectory {
  /** The page to fetch before the ports open. */
  page: string
  /** Stops waiting for the request. */
  close(): Promise<void>
}

/** Creates the directory, and removes it when the page is fetched. */
export async function openWorkingDirectory(path: string): Promise<WorkingDirectory> {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const route = `/${randomUUID()}`
  const server = createServer((request, response) => {
    const isOurs = request.url === route
    if (isOurs) rmSync(path, { recursive: true, force: true })
    response.writeHead(isOurs ? 200 : 404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    page: `http://127.0.0.1:${(server.address() as AddressInfo).port}${route}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
