import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { describeTables, type OpenTables } from './tables.conformance.ts'

async function open(): Promise<OpenTables> {
  const directory = await mkdtemp(join(tmpdir(), 'pledgeview-tables-'))
  const tables = openChdbTables(directory)
  return {
    tables,
    async dispose() {
      await tables.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

describeTables('chDB, in-process', open)

describe('chDB, in-process', () => {
  test('closing waits for statements that run, so that the next one can open', async () => {
    const first = await open()
    const abort = new AbortController()
    const aborted = first.tables.rows({ query: 'SELECT sleep(1)' }, { signal: abort.signal })
    abort.abort()
    await expect(aborted).rejects.toThrow('no longer waits')
    await first.dispose()
    const second = await open()
    expect(await second.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
    await second.dispose()
  })

  test('what was inserted is there after closing and opening again', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-tables-'))
    try {
      const first = openChdbTables(directory)
      await first.run({ query: 'CREATE DATABASE kept' })
      await first.run({ query: 'CREATE TABLE kept.t (n UInt32) ENGINE = MergeTree ORDER BY n' })
      await first.insert({ table: 'kept.t', columns: ['n'], format: 'TSV', body: '1\n2\n' })
      await first.close()
      const second = openChdbTables(directory)
      expect(await second.rows({ query: 'SELECT sum(n) AS sum FROM kept.t' })).toEqual([{ sum: 3 }])
      await second.close()
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  test('a second data directory in one process is refused with an error that names it', async () => {
    const first = await open()
    const other = await mkdtemp(join(tmpdir(), 'pledgeview-tables-'))
    expect(() => openChdbTables(other)).toThrow(other)
    await first.dispose()
    await rm(other, { recursive: true, force: true })
  })

  test('as many statements run side by side as there are lanes', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-tables-'))
    const script = fileURLToPath(new URL('../support/side-by-side-child.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [script, directory, '6'])
    expect(JSON.parse(stdout)).toEqual(['quick', 'slow', 'slow', 'slow', 'slow', 'slow'])
    await rm(directory, { recursive: true, force: true })
  })
})
