/**
 * Proves that ClickHouse's server is restarted when it ends unexpectedly, if possible, and given up with a reason if not; and that a start
 * that cannot succeed reports a helpful reason, and leaves no process.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ClickHouseServer, startClickHouseServer } from '../../../services/clickhouse-server/server.ts'
import { ServerStartError } from '../../../services/clickhouse-server/start-error.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { askClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { processesWith, procFileSystem } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

const waits = { timeout: 60_000, interval: 10 }

describe('ClickHouse’s server, after it ended unexpectedly,', () => {
  let directory: string
  let server: ClickHouseServer
  let tables: Tables
  /** What came to the program that has taken the port. */
  let heard = ''

  beforeEach(async context => {
    needs(context, procFileSystem)
    directory = mkdtempSync(join(tmpdir(), 'pledgeview-restart-'))
    server = await open()
    tables = openTables(settingsFor(server))
    await tables.run({ query: 'CREATE TABLE kept (n UInt32) ENGINE = MergeTree ORDER BY n' })
  })

  afterEach(async () => {
    await tables.close()
    await server.close()
    expect(running()).toEqual([])
    rmSync(directory, { recursive: true, force: true })
  })

  test('says why it is away, may be asked again meanwhile, and returns on the same ports with all acknowledged rows', async () => {
    const { url, nativePort } = server
    for (let round = 1; round <= 3; round++) {
      await insert(round)
      const { pid, outage } = await kill()
      expect(outage).toBe('signal SIGKILL')
      while (server.outage() !== undefined) {
        const failure = await tables.rows({ query: 'SELECT 1' }).catch((error: unknown) => error)
        if (failure instanceof Error) expect(failure).toMatchObject({ name: 'TablesError', retryable: true })
      }
      expect(server.pid()).not.toBe(pid)
      expect(server).toMatchObject({ url, nativePort })
      expect(running()).toEqual([server.pid()])
      const [row] = await tables.rows<{ all: number[] }>({ query: 'SELECT groupArray(n) AS all FROM kept' })
      expect(row?.all.toSorted()).toEqual(Array.from({ length: round }, (_, index) => index + 1))
    }
  })

  test('is given up with the reason if its port is taken, which gets no password, and not started again when it is free', async () => {
    const careful = openTables({ ...settingsFor(server), outage: server.outage })
    const taker = await takePortOf(server)
    await vi.waitFor(() => expect(server.outage()).toBeDefined(), waits)
    await expect(careful.rows({ query: 'SELECT 1' })).rejects.toMatchObject({ retryable: true })
    await careful.close()
    const { port } = new URL(server.url)
    expect(await server.failed).toMatchObject({ message: expect.stringContaining(`port ${port} is taken`) })
    expect(server.outage()).toContain(`port ${port} is taken`)
    expect(heard).not.toContain('authorization')
    await closed(taker)
    await staysAway()
  })

  test('is given up with the reason if no process can be started, and the parent continues', async () => {
    const { execPath } = process
    process.execPath = join(directory, 'no-such-program')
    try {
      await kill()
      expect(await server.failed).toMatchObject({ message: expect.stringContaining('no-such-program') })
    } finally {
      process.execPath = execPath
    }
    await staysAway()
  })

  test('leaves no process when it is closed during the restart', async () => {
    const { pid } = await kill()
    const next = await vi.waitUntil(() => running().find(one => one !== pid), { ...waits, interval: 1 })
    expect(next).toBeGreaterThan(0)
    await server.close()
    expect(running()).toEqual([])
  })

  function open(): Promise<ClickHouseServer> {
    return startClickHouseServer({
      dataDirectory: join(directory, 'tables'),
      filesDirectory: join(directory, 'clickhouse'),
      databases: defaultDatabases,
      nativePort: 0,
      downMsMax: 1_000,
      logger: pino({ level: 'silent' }),
    })
  }

  function insert(n: number): Promise<void> {
    return tables.run({
      query: 'INSERT INTO kept SELECT {n:UInt32} SETTINGS async_insert = 0',
      query_params: { n },
    })
  }

  /** Resolves when the outage is known. */
  async function kill(): Promise<{ pid: number; outage: string | undefined }> {
    const pid = server.pid()
    await server.kill()
    await vi.waitFor(() => expect(server.outage()).toBeDefined(), { ...waits, interval: 1 })
    return { pid, outage: server.outage() }
  }

  /** Kills it repeatedly, to take its port before the next process does. */
  async function takePortOf({ url }: ClickHouseServer): Promise<Server> {
    for (;;) {
      await server.kill()
      // It answers as the server would.
      const taker = createServer(socket => {
        socket
          .on('error', () => {})
          .on('data', chunk => {
            heard += String(chunk).toLowerCase()
            socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1\n')
          })
      })
      taker.listen(Number(new URL(url).port), '127.0.0.1')
      const isListening = await once(taker, 'listening').then(
        () => true,
        () => false,
      )
      if (isListening) return taker
    }
  }

  /** It never returns. There is no event to wait for, so this watches for longer than the pause before a restart. */
  async function staysAway(): Promise<void> {
    const until = performance.now() + 1_000
    while (performance.now() < until) {
      expect(running()).toEqual([])
      await sleep(20)
    }
  }

  function running(): number[] {
    return processesWith(join(directory, 'clickhouse', 'config.xml'))
  }
})

describe('ClickHouse’s server does not start, and gives the reason,', () => {
  let directory: string

  beforeEach(context => {
    needs(context, procFileSystem)
    directory = mkdtempSync(join(tmpdir(), 'pledgeview-start-'))
  })

  afterEach(() => {
    vi.unstubAllEnvs()
    rmSync(directory, { recursive: true, force: true })
  })

  test('if another server holds the directory, and that one keeps running', async () => {
    const first = await startClickHouse({ directory })
    await askClickHouse(first, 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n')
    const failed = startClickHouse({ directory, programPassword: 'another' })
    await expect(failed).rejects.toMatchObject({
      name: 'ServerStartError',
      message: `another ClickHouse uses ${join(directory, 'tables')}`,
    })
    expect(running()).toEqual([first.pid])
    expect(await askClickHouse(first, 'SELECT count() FROM kept')).toBe('0\n')
    await first.stop()
  })

  test('but waits for a server that is releasing the directory', async () => {
    const first = await startClickHouse({ directory })
    await askClickHouse(first, 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n')
    const starting = startClickHouse({ directory })
    // It was refused at least once when a third process starts.
    const seen = new Set<number>()
    await vi.waitFor(
      () => {
        for (const pid of running()) seen.add(pid)
        expect(seen.size).toBeGreaterThan(2)
      },
      { timeout: 90_000, interval: 1 },
    )
    await first.stop()
    const second = await starting
    expect(await askClickHouse(second, 'SELECT count() FROM kept')).toBe('0\n')
    await second.stop()
  })

  test.each([
    ['is not a library', (path: string) => writeFileSync(path, 'This is no library.\n')],
    ['is not there', () => {}],
  ])('if its library %s', async (_, make) => {
    const path = join(directory, 'libchdb.so')
    make(path)
    vi.stubEnv('CHDB_LIBCHDB_PATH', path)
    const { message } = await failureOf()
    expect(message).toContain(`ClickHouse's library cannot be loaded on ${process.platform} ${process.arch}`)
    expect(message).toContain('npm ci')
    expect(message).toContain('the image has none: it is for the distributed form')
    expect(message).toContain(path)
  })

  async function failureOf(): Promise<ServerStartError> {
    const started = await startClickHouse({ directory }).catch((error: unknown) => error)
    expect(started).toBeInstanceOf(ServerStartError)
    expect(running()).toEqual([])
    return started as ServerStartError
  }

  function running(): number[] {
    return processesWith(join(directory, 'clickhouse', 'config.xml'))
  }
})

async function closed(server: Server): Promise<void> {
  server.close()
  await once(server, 'close')
}
