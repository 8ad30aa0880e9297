/** Proves that broken table files never lose rows silently: the tables do not open, or reads fail. */
import { appendFileSync, copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ServerStartError } from '../../../services/clickhouse-server/start-error.ts'
import { TablesError } from '../../../services/tables/port.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { processesWith, procFileSystem } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

const rows = 5_000

describe('tables with a part', () => {
  let directory: TestDirectory
  let part: string

  beforeEach(async context => {
    needs(context, procFileSystem)
    directory = makeTestDirectory()
    const { tables, close } = await directory.open()
    await tables.run({
      query: `INSERT INTO pledgeview_read_1.campaigns (campaign_id, status, title)
              SELECT toString(number), 'LIVE', randomPrintableASCII(50) FROM numbers(${rows}) SETTINGS async_insert = 0`,
    })
    const [row] = await tables.rows<{ path: string }>({
      query:
        "SELECT path FROM system.parts WHERE database = 'pledgeview_read_1' AND table = 'campaigns' AND active",
    })
    part = row?.path ?? ''
    await close()
  })

  afterEach(() => directory.remove())

  test('that cannot be read never open, and the error names the table and the remedy; once repaired, they have every row', async () => {
    const spoils: [name: string, spoil: (path: string) => void][] = [
      ['data.bin', path => truncateSync(path, 100)],
      ['data.bin', path => appendFileSync(path, 'more')],
      ['data.bin', path => rmSync(path)],
      ['primary.cidx', path => truncateSync(path, 1)],
      ['columns.txt', path => rmSync(path)],
    ]
    for (const [name, spoil] of spoils) {
      const path = join(part, name)
      const saved = join(directory.path, 'saved')
      copyFileSync(path, saved)
      spoil(path)
      const { message } = await startFailure()
      expect(message).toContain('a part of the table pledgeview_read_1.campaigns cannot be read')
      expect(message).toMatch(/move it away and start again: the tables are then filled from the event log/)
      expect(message).not.toMatch(/max_suspicious|Stack trace/)
      copyFileSync(saved, path)
    }
    const { tables, close } = await directory.open()
    expect(await tables.rows({ query: 'SELECT count() AS rows FROM crowdfunding.campaigns' })).toEqual([
      { rows },
    ])
    await close()
  })

  test('whose bytes were changed make reads fail, permanently', async () => {
    const path = join(part, 'data.bin')
    const bytes = readFileSync(path)
    for (let at = Math.floor(bytes.length / 2); at < bytes.length; at += 7) {
      bytes[at] = (bytes[at] ?? 0) ^ 255
    }
    writeFileSync(path, bytes)
    const { tables, close } = await directory.open()
    const read = tables.rows({ query: 'SELECT max(title), count() FROM crowdfunding.campaigns' })
    await expect(read).rejects.toBeInstanceOf(TablesError)
    await expect(read).rejects.toMatchObject({ retryable: false, message: expect.stringContaining(part) })
    await close()
  })

  test('that are moved away as the message says open again, empty', async () => {
    truncateSync(join(part, 'data.bin'), 100)
    await startFailure()
    rmSync(join(directory.path, 'tables'), { recursive: true })
    const { tables, close } = await directory.open()
    const rows = await tables.rows({ query: 'SELECT count() AS rows FROM crowdfunding.campaigns' })
    expect(rows).toEqual([{ rows: 0 }])
    await close()
  })

  async function startFailure(): Promise<ServerStartError> {
    const failure = await directory.open().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ServerStartError)
    expect(processesWith(directory.path)).toEqual([])
    return failure as ServerStartError
  }
})
