/** What ClickHouse's server leaves on disk, shows of itself and opens to others; and that it stays within its memory limit. */
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { startEmbeddedService } from '../../../services/embedded/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { askClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { freeDoor, makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { filesWith } from '../../support/events/find-texts.ts'
import { pathsIn } from '../../support/runner/paths-in.ts'
import { listeningOf, loopbackDigits, procFileSystem, startOf } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

const sqlPassword = 'of the data teams: <&> wörd'

describe('ClickHouse’s server', () => {
  let directory: TestDirectory

  beforeEach(() => {
    directory = makeTestDirectory()
    // Behind what a test closes itself.
    onTestFinished(directory.remove)
  })

  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test('keeps its files private, and its password in none; it listens on the loopback, and shows no secret of its parent', async context => {
    // They are there, and all users may read them.
    for (const name of ['tables', 'clickhouse']) {
      mkdirSync(join(directory.path, name))
      chmodSync(join(directory.path, name), 0o755)
    }
    vi.stubEnv('PLEDGEVIEW_KEY_PEPPER', 'a secret of the parent')
    const environment = { PLEDGEVIEW_SQL_PASSWORD: sqlPassword }
    const { clickHouse, door, tables, close } = await directory.open({ environment })
    await tables.run({ query: "INSERT INTO pledgeview.migrations (number, name) VALUES (99, 'more')" })
    const wrong = { ...clickHouse, password: `${clickHouse.password}, but wrong` }
    await expect(askClickHouse(wrong, 'SELECT 1')).rejects.toThrow('AUTHENTICATION_FAILED')

    expectPrivateFiles(50)
    expect(['tables', 'clickhouse'].map(name => modeOf(name))).toEqual(['700', '700'])
    const users = readFileSync(join(directory.path, 'clickhouse', 'users.xml'), 'utf8')
    for (const password of [clickHouse.password, sqlPassword]) {
      expect(filesWith(directory.path, [password])).toEqual([])
      expect(users).toContain(createHash('sha256').update(password).digest('hex'))
    }

    needs(context, procFileSystem)
    const { commandLine, environment: shown } = startOf(clickHouse.pid())
    expect(commandLine).toContain('config.xml')
    // Whoever knows the page could fetch it first, and the start would fail. Every user of this machine may read the command line.
    expect(commandLine).not.toContain('http://')
    for (const secret of [clickHouse.password, sqlPassword, 'a secret of the parent'])
      expect(`${commandLine} ${shown}`).not.toContain(secret)
    const ports = ({ url, nativePort = 0 }: { url: string; nativePort: number | undefined }) =>
      [Number(new URL(url).port), nativePort].map(loopbackDigits).toSorted()
    expect(listeningOf(clickHouse.pid())).toEqual(ports(clickHouse))
    expect(door && listeningOf(process.pid)).toEqual(door && ports(door))
    await close()
  })

  test('does not listen for data teams if SQL access is off', async context => {
    needs(context, procFileSystem)
    const { clickHouse, door, close } = await directory.open({ sql: undefined })
    expect([door, clickHouse.nativePort]).toEqual([undefined, undefined])
    expect(listeningOf(process.pid)).toEqual([])
    expect(listeningOf(clickHouse.pid())).toEqual([loopbackDigits(Number(new URL(clickHouse.url).port))])
    await close()
  })

  test('has its password only in service.json while a service runs, and nowhere afterwards; the files of the service are private', async () => {
    const service = await startEmbeddedService({
      directory: openDataDirectory(directory.path),
      config: readConfig({}),
      port: 0,
      opsPort: 0,
      sql: freeDoor,
      logger: pino({ level: 'silent' }),
    })
    const { password } = service.model.clickHouse
    expect(filesWith(directory.path, [password])).toEqual(['service.json'])
    expectPrivateFiles(60)
    expect(readdirSync(directory.path)).toEqual(
      expect.arrayContaining(['journal.sqlite-wal', 'lock.sqlite', 'service.json']),
    )
    await service.close()
    expect(filesWith(directory.path, [password])).toEqual([])
  })

  test('stays within its memory limit: a statement that would exceed it fails, and the server keeps running', async () => {
    const clickHouse = await startClickHouse({ memoryBytesMax: 700_000_000 })
    const tables = openTables(settingsFor(clickHouse))
    const greedy = tables.rows({ query: 'SELECT length(groupArray(number)) FROM numbers(1000000000)' })
    await expect(greedy).rejects.toMatchObject({ type: 'MEMORY_LIMIT_EXCEEDED', retryable: true })
    await expect(greedy).rejects.toThrow(/total|server/i)
    expect(await tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
    await tables.close()
    await clickHouse.stop()
  })

  // A session of an analyst belongs to no query: it has no bound of its own, and a request keeps it alive. So it holds little.
  test('whose memory is filled by sessions of analysts is started again, and the program reads on', async () => {
    const environment = { PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX: '600000000' }
    const opened = await directory.open({ environment })
    onTestFinished(opened.close)
    const ask = (query: string, parameters: Record<string, string | number> = {}) =>
      askAsAnalyst(opened.door?.url ?? '', query, { parameters, msMax: 5_000 })
    const pid = opened.clickHouse.pid()
    const value = 'x'.repeat(3_500_000)
    const over = new AbortController()
    async function fill(session: number): Promise<void> {
      const parameters = { session_id: `s${session}`, max_query_size: 4_194_304 }
      for (let n = 0; !over.signal.aborted; n++)
        await ask(`SET param_p${n} = '${value}'`, parameters).catch(() => sleep(50))
    }
    const filling = Promise.all(Array.from({ length: 8 }, (_, session) => fill(session)))
    onTestFinished(async () => {
      over.abort()
      await filling
    })
    await expect.poll(() => opened.clickHouse.pid(), { timeout: 100_000 }).not.toBe(pid)
    over.abort()
    await filling
    await expect.poll(() => opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
    await expect
      .poll(async () => (await ask('SELECT 1').catch(String)) as unknown)
      .toMatchObject({ text: '1\n' })
  }, 300_000)

  function expectPrivateFiles(least: number): void {
    const all = pathsIn(directory.path).filter(({ isFile }) => isFile)
    expect(all.length).toBeGreaterThan(least)
    expect(all.filter(({ path }) => (lstatSync(path).mode & 0o077) !== 0)).toEqual([])
  }

  function modeOf(...names: string[]): string {
    return (lstatSync(join(directory.path, ...names)).mode & 0o777).toString(8)
  }
})
