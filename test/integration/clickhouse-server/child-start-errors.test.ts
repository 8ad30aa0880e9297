/** Proves that a start of ClickHouse's server that cannot succeed reports a helpful reason, and leaves no process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ServerStartError } from '../../../services/clickhouse-server/start-error.ts'
import { askClickHouse, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { processesWith, procFileSystem } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

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
