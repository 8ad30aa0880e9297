/** What ClickHouse's server leaves on disk, shows of itself and opens to others; and that it stays within its memory limit. */
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openDataDirectory } from '../../../services/local/data-directory.ts'
import { startEmbeddedService } from '../../../services/local/service.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { openTables } from '../../../services/tables/clickhouse.ts'
import { askClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse.ts'
import { freeDoor, makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { listeningOf, loopbackDigits, procFileSystem, startOf } from '../../support/processes.ts'
import { needs } from '../../support/requirements.ts'

const sqlPassword = 'of the data teams: <&> wörd'

describe('ClickHouse’s server', () => {
  let directory: TestDirectory

  beforeEach(() => {
    directory = makeTestDirectory()
  })

  afterEach(() => {
    vi.unstubAllEnvs()
    directory.remove()
  })

  test.each([
    ['new', () => {}],
    [
      'present, and readable by all users',
      (path: string) => {
        for (const name of ['tables', 'clickhouse']) {
          mkdirSync(join(path, name))
          chmodSync(join(path, name), 0o755)
        }
      },
    ],
  ])('keeps its files private to its account, in folders that were %s', async (_, make) => {
    make(directory.path)
    const { tables, close } = await directory.open()
    await tables.run({ query: "INSERT INTO pledgeview.migrations (number, name) VALUES (99, 'more')" })
    expect(modeOf('tables')).toBe('700')
    expect(modeOf('clickhouse')).toBe('700')
    for (const name of ['config.xml', 'users.xml', 'clickhouse.log']) {
      expect(modeOf('clickhouse', name), name).toBe('600')
    }
    const open = filesIn(directory.path).filter(({ mode }) => (mode & 0o077) !== 0)
    expect(open.map(({ path }) => path)).toEqual([])
    await close()
  })

  test('has its password in no file, and the password of the data teams only as a hash', async () => {
    const { clickHouse, tables, close } = await directory.open({
      environment: { PLEDGEVIEW_SQL_PASSWORD: sqlPassword },
    })
    await tables.rows({ query: 'SELECT 1' })
    await expect(
      askClickHouse({ ...clickHouse, password: `${clickHouse.password}, but wrong` }, 'SELECT 1'),
    ).rejects.toThrow('AUTHENTICATION_FAILED')
    expect(filesIn(directory.path).length).toBeGreaterThan(50)
    expect(filesWith(clickHouse.password)).toEqual([])
    expect(filesWith(sqlPassword)).toEqual([])
    const users = readFileSync(join(directory.path, 'clickhouse', 'users.xml'), 'utf8')
    for (const password of [clickHouse.password, sqlPassword]) {
      expect(users).toContain(createHash('sha256').update(password).digest('hex'))
    }
    await close()
  })

  test('has its password only in service.json while a service runs, and nowhere afterwards', async () => {
    const service = await startEmbeddedService({
      directory: openDataDirectory(directory.path),
      config: readConfig({}),
      port: 0,
      opsPort: 0,
      sql: freeDoor,
      logger: pino({ level: 'silent' }),
    })
    const { password } = service.model.clickHouse
    expect(filesWith(password)).toEqual([join(directory.path, 'service.json')])
    expect(modeOf('service.json')).toBe('600')
    await service.close()
    expect(filesWith(password)).toEqual([])
  })

  test('is started without secrets that others could see, including those of its parent', async context => {
    needs(context, procFileSystem)
    vi.stubEnv('PLEDGEVIEW_KEY_PEPPER', 'a secret of the parent')
    const { clickHouse, close } = await directory.open({
      environment: { PLEDGEVIEW_SQL_PASSWORD: sqlPassword },
    })
    const { commandLine, environment } = startOf(clickHouse.pid())
    expect(commandLine).toContain('config.xml')
    for (const secret of [clickHouse.password, sqlPassword, 'a secret of the parent']) {
      expect(commandLine).not.toContain(secret)
      expect(environment).not.toContain(secret)
    }
    await close()
  })

  test('listens on the loopback only, and not for data teams if SQL access is off', async context => {
    needs(context, procFileSystem)
    const { clickHouse, door, close } = await directory.open()
    const ports = ({ url, nativePort = 0 }: { url: string; nativePort: number | undefined }) =>
      [Number(new URL(url).port), nativePort].map(loopbackDigits).toSorted()
    expect(listeningOf(clickHouse.pid())).toEqual(ports(clickHouse))
    expect(door && listeningOf(process.pid)).toEqual(door && ports(door))
    await close()

    const closed = await directory.open({ sql: undefined })
    expect([closed.door, closed.clickHouse.nativePort]).toEqual([undefined, undefined])
    expect(listeningOf(process.pid)).toEqual([])
    expect(listeningOf(closed.clickHouse.pid())).toEqual([
      loopbackDigits(Number(new URL(closed.clickHouse.url).port)),
    ])
    await closed.close()
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

  function filesWith(text: string): string[] {
    return filesIn(directory.path)
      .filter(({ content }) => content.includes(text))
      .map(({ path }) => path)
  }

  function modeOf(...names: string[]): string {
    return (lstatSync(join(directory.path, ...names)).mode & 0o777).toString(8)
  }
})

interface SeenFile {
  path: string
  mode: number
  content: Buffer
}

/** The files below a folder. Files that disappear during the scan are left out. */
function filesIn(path: string): SeenFile[] {
  return readdirSync(path, { withFileTypes: true }).flatMap(entry => {
    const inner = join(path, entry.name)
    try {
      if (entry.isDirectory()) return filesIn(inner)
      return entry.isFile()
        ? [{ path: inner, mode: lstatSync(inner).mode, content: readFileSync(inner) }]
        : []
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}
