/**
 * The ports of the data teams, in front of ClickHouse's own ports: a pipe of bytes, on a thread of its own (door-worker.ts).
 *
 * ClickHouse counts the connections of all its ports together, and keeps a silent one for seconds. So strangers who only
 * hold connections could take every place, and the program could not reach its own server. The program uses ClickHouse's own
 * HTTP port. All others come through here, and here they are few.
 *
 * The ports stay open while ClickHouse is restarted. A connection that comes meanwhile is closed, or, if another program has ClickHouse's
 * port, passed on to that. If the thread fails, the program ends, as after any uncaught error.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** The two ports of ClickHouse for data teams. 0 takes a free port. */
export interface SqlDoor {
  httpPort: number
  nativePort: number
}

export type OpenDoor = Awaited<ReturnType<typeof openDoor>>

/** Resolves once both ports listen. */
export async function openDoor(wanted: SqlDoor, behind: SqlDoor) {
  const worker = new Worker(new URL('door-worker.ts', import.meta.url), { workerData: { wanted, behind } })
  const [{ httpPort, nativePort }] = (await once(worker, 'message')) as [SqlDoor]
  return {
    url: `http://127.0.0.1:${httpPort}`,
    nativePort,
    /** Ends every connection. */
    close: async () => void (await worker.terminate()),
  }
}
