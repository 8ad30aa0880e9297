/** Proves that broken table files never lose rows silently: the tables do not open, or reads fail. */
import { appendFileSync, copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, type TestContext, test } from 'vitest'
import { makeTestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { processesWith, procFileSystem } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

const rows = 5_000

test('tables with a part that cannot be read never open, and the error names the table and the remedy; once repaired, they have every row, and once moved away, none', async context => {
  const { directory, part } = await makePart(context)
  const campaignsOnOpening = async () => {
    const opened = await directory.open()
    const found = await opened.tables.rows({ query: 'SELECT count() AS rows FROM crowdfunding.campaigns' })
    await opened.close()
    return found
  }
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
    const failure = await directory.open().catch((error: Error) => error)
    expect(failure).toMatchObject({ name: 'ServerStartError' })
    const { message } = failure as Error
    expect(message).toContain('a part of the table pledgeview_read_1.campaigns cannot be read')
    expect(message).toMatch(/move it away and start again: the tables are then filled from the event log/)
    expect(message).not.toMatch(/max_suspicious|Stack trace/)
    expect(processesWith(directory.path)).toEqual([])
    copyFileSync(saved, path)
  }
  expect(await campaignsOnOpening()).toEqual([{ rows }])
  rmSync(join(directory.path, 'tables'), { recursive: true })
  expect(await campaignsOnOpening()).toEqual([{ rows: 0 }])
})

test('tables with a part whose bytes were changed make reads fail, permanently', async context => {
  const { directory, part } = await makePart(context)
  const path = join(part, 'data.bin')
  const bytes = readFileSync(path)
  for (let at = Math.floor(bytes.length / 2); at < bytes.length; at += 7) bytes[at] = (bytes[at] ?? 0) ^ 255
  writeFileSync(path, bytes)
  const { tables, close } = await directory.open()
  onTestFinished(close)
  const read = tables.rows({ query: 'SELECT max(title), count() FROM crowdfunding.campaigns' })
  await expect(read).rejects.toMatchObject({ retryable: false, message: expect.stringContaining(part) })
})

/** A directory whose tables are closed, and the path of the part that has their rows. */
async function makePart(context: TestContext) {
  needs(context, procFileSystem)
  const directory = makeTestDirectory()
  onTestFinished(directory.remove)
  const { tables, close } = await directory.open()
  await tables.run({
    query: `INSERT INTO pledgeview_read_1.campaigns (campaign_id, status, title)
            SELECT toString(number), 'LIVE', randomPrintableASCII(50) FROM numbers(${rows}) SETTINGS async_insert = 0`,
  })
  const [part] = await tables.rows<{ path: string }>({
    query:
      "SELECT path FROM system.parts WHERE database = 'pledgeview_read_1' AND table = 'campaigns' AND active",
  })
  await close()
  return { directory, part: part?.path ?? '' }
}
