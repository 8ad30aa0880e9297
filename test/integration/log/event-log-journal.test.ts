import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Topic } from '../../../contracts/events/event.ts'
import { inWriteTransaction, openJournalFile } from '../../../services/log/local/file.ts'
import { openJournalReader, openJournalWriter } from '../../../services/log/local/journal.ts'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import {
  type FindStarts,
  LogHeld,
  type LogRecord,
  type NewRecord,
  type PollBounds,
  type RememberedWatermark,
} from '../../../services/log/port.ts'
import { journalEnds } from '../../support/events/journal-ends.ts'
import { fromStart } from '../../support/events/starts.ts'
import { run } from '../../support/runner/programs.ts'
import { describeEventLog } from './event-log.conformance.ts'

describeEventLog('in a journal', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'journal-'))
  const path = join(directory, 'journal.sqlite')
  return {
    openWriter: () => openJournalWriter(path),
    openReader: (consumer, starts = fromStart) => openJournalReader(path, { consumer, starts }),
    remove: async () => rmSync(directory, { recursive: true }),
  }
})

describe('the journal', () => {
  const never = new AbortController().signal
  const bounds: PollBounds = { recordsMax: 10_000, bytesMax: 1024 ** 2, waitMsMax: 0 }
  let directory: string
  let path: string

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'journal-'))
    path = join(directory, 'journal.sqlite')
  })

  afterEach(() => rmSync(directory, { recursive: true }))

  async function append(records: readonly NewRecord[], now = () => 1_000): Promise<void> {
    const writer = await openJournalWriter(path, { now })
    await writer.append(records)
    await writer.close()
  }

  test('delivers a new key with the first poll, behind any backlog of pledges', async () => {
    await append([
      ...recordsOf('pledges', 5_000),
      ...recordsOf('campaigns', 500),
      ...recordsOf('api-keys', 1),
    ])
    const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
    const { records } = await reader.poll({ ...bounds, recordsMax: 100 }, never)
    expect(countsByTopic(records)).toEqual({ 'api-keys': 1, campaigns: 50, pledges: 49 })
    expect(records[0]?.topic).toBe('api-keys')
    await reader.close()
  })

  test.each([
    { recordsMax: 1, bytesMax: 1024 ** 2 },
    { recordsMax: 2, bytesMax: 1024 ** 2 },
    { recordsMax: 100, bytesMax: 1 },
    { recordsMax: 100, bytesMax: 250 },
  ])('lets no topic starve, however tight a poll is: %o', async tight => {
    await append([...recordsOf('pledges', 40), ...recordsOf('campaigns', 40), ...recordsOf('api-keys', 40)])
    const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
    const delivered: LogRecord[] = []
    for (let poll = 0; poll < 12; poll++) {
      delivered.push(...(await reader.poll({ ...bounds, ...tight }, never)).records)
    }
    const counts = countsByTopic(delivered)
    for (const topic of ['api-keys', 'campaigns', 'pledges']) expect(counts[topic]).toBeGreaterThanOrEqual(4)
    await reader.close()
  })

  test('gives the event loop its turn while it reads a long backlog', async () => {
    await append(recordsOf('pledges', 10_000))
    const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
    let turns = 0
    let isReading = true
    const count = () => {
      turns++
      if (isReading) setImmediate(count)
    }
    setImmediate(count)
    const { records } = await reader.poll({ ...bounds, bytesMax: 64 * 1024 ** 2 }, never)
    isReading = false
    expect(records).toHaveLength(10_000)
    expect(turns).toBeGreaterThanOrEqual(10_000 / 2_000)
    await reader.close()
  })

  test('leaves the thread free while it waits for another writer', async () => {
    const writer = await openJournalWriter(path)
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    const attempts: number[] = []
    const { exec } = DatabaseSync.prototype
    const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      const beganAt = performance.now()
      try {
        exec.call(this, sql)
      } finally {
        if (sql.includes('BEGIN IMMEDIATE')) attempts.push(performance.now() - beganAt)
      }
    })
    const appended = writer.append(recordsOf('pledges', 1))
    await expect.poll(() => attempts.length).toBeGreaterThan(10)
    spy.mockRestore()
    // The shortest, because a busy machine makes any of them longer. One that waits within SQLite blocks for 20 ms.
    expect(Math.min(...attempts)).toBeLessThan(15)
    other.exec('ROLLBACK')
    other.close()
    await appended
    expect(journalEnds(path).pledges).toBe(2)
    await writer.close()
  })

  test('that finds no room on its disk says so, and may be written later', async () => {
    const db = await openJournalFile(path)
    const pages = Number(db.prepare('PRAGMA page_count').get()?.page_count)
    db.exec(`PRAGMA max_page_count = ${pages}`)
    const insert = () =>
      inWriteTransaction(db, path, () =>
        db.exec('INSERT INTO records_pledges (appended_at, value) VALUES (1, zeroblob(100000))'),
      )
    const failed = insert()
    await expect(failed).rejects.toBeInstanceOf(LogHeld)
    await expect(failed).rejects.toThrow(`the journal ${path} cannot be written: database or disk is full`)
    db.exec(`PRAGMA max_page_count = ${pages + 100}`)
    await insert()
    db.close()
    expect(journalEnds(path).pledges).toBe(2)
  })

  test('that finds no room for what stands beside it says so, too: SQLite calls that an I/O error', async () => {
    await (await openJournalWriter(path)).close()
    const place = new URL('../../../services/log/local/journal.ts', import.meta.url)
    const script = `await (await import('${place}')).openJournalWriter('${path}')`
    // No file may grow beyond a few KiB.
    const shell = ['-c', 'ulimit -f 8 && exec "$0" --input-type=module --eval "$1"', process.execPath, script]
    const { code, stderr } = await run('sh', shell)
    expect([code, stderr]).toEqual([1, expect.stringContaining('disk I/O error. Make room on its disk')])
  })

  test('appends nothing of a batch that fails', async () => {
    const writer = await openJournalWriter(path)
    const broken = { topic: 'pledges', key: 'not bytes', value: {} } as unknown as NewRecord
    await expect(writer.append([...recordsOf('pledges', 3), broken])).rejects.toThrow()
    await writer.append(recordsOf('campaigns', 1))
    await writer.close()
    expect(journalEnds(path)).toMatchObject({ campaigns: 2, pledges: 1, 'api-keys': 1 })
  })

  test('never gives an offset twice, though records were deleted', async () => {
    await append(recordsOf('pledges', 3))
    const db = new DatabaseSync(path)
    db.exec('DELETE FROM records_pledges')
    db.close()
    await append(recordsOf('pledges', 1))
    const reader = await openJournalReader(path, { consumer: 'projector', starts: fromStart })
    expect((await reader.poll(bounds, never)).records.map(({ offset }) => offset)).toEqual([4])
    await reader.close()
  })

  test.each([
    [
      'a newer program',
      'PRAGMA user_version = 3',
      /schema version 3, made by newer software; this one reads 2/,
    ],
    [
      'an older program',
      'PRAGMA user_version = 0',
      /schema version 0, made by older software; this one reads 2/,
    ],
    ['another application', 'PRAGMA application_id = 7', /is not a journal/],
  ])('refuses a file of %s, and says so', async (_name, pragma, message) => {
    await append(recordsOf('pledges', 1))
    const db = new DatabaseSync(path)
    db.exec(pragma)
    db.close()
    await expect(openJournalWriter(path)).rejects.toThrow(message)
    await expect(openJournalReader(path, { consumer: 'projector', starts: fromStart })).rejects.toThrow(
      message,
    )
  })

  test('takes over a file of version 1: its records, and the watermarks that it remembered among the positions', async () => {
    await append(recordsOf('pledges', 3))
    const db = new DatabaseSync(path)
    db.exec(`DROP TABLE watermarks; PRAGMA user_version = 1; CREATE TABLE consumers (name TEXT, generation INTEGER);
      CREATE TABLE positions (consumer TEXT, topic TEXT, partition INTEGER, next INTEGER);
      INSERT INTO positions VALUES ('projector', 'pledges', 0, 4), ('projector', 'watermark', 0, 7000),
        ('projector', 'shown watermark', 0, 6000), ('rebuild', 'pledges', 0, 9000)`)
    db.close()
    let remembered: RememberedWatermark | undefined
    const starts: FindStarts = {
      async find(state) {
        remembered = state.remembered
        return new Map()
      },
      beginAnew() {},
    }
    const reader = await openJournalReader(path, { consumer: 'projector', starts })
    expect(remembered).toEqual({ watermark: 7_000, shown: 6_000 })
    expect((await reader.poll(bounds, never)).records).toHaveLength(3)
    await reader.close()
  })

  test('does not touch a file that is not a journal', async () => {
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE notes (text TEXT)')
    other.close()
    await expect(openJournalWriter(path)).rejects.toThrow('is not a journal')
    writeFileSync(path, 'something that is not a database, despite its name\n'.repeat(100))
    await expect(openJournalWriter(path)).rejects.toThrow(`cannot open the journal ${path}`)
    await expect(openJournalWriter(join(directory, 'no', 'directory'))).rejects.toThrow('cannot make')
  })
})

test('a data directory that a process holds is refused to others, also after a failed attempt of the holder, and free after its end', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'lock-'))
  const directory = join(parent, 'data')
  const module = new URL('../../../services/log/local/lock.ts', import.meta.url).href
  const script = `import { lockDataDirectory } from '${module}'
    try { lockDataDirectory(process.argv[1]); console.log('held') } catch (error) { console.log(error.message) }`
  const answerOfAnother = async () => {
    const options = ['--input-type=module', '-e', script, directory]
    return (await promisify(execFile)(process.execPath, options)).stdout
  }
  const lock = lockDataDirectory(directory)
  expect(() => lockDataDirectory(directory)).toThrow('is in use')
  expect(await answerOfAnother()).toContain(`the data directory ${directory} is in use`)
  lock.close()
  expect(await answerOfAnother()).toBe('held\n')
  lockDataDirectory(directory).close()
  rmSync(parent, { recursive: true })
})

function recordsOf(topic: Topic, count: number): NewRecord[] {
  return Array.from({ length: count }, (_, i) => ({
    topic,
    key: Buffer.from('k'),
    value: Buffer.alloc(99, i),
  }))
}

function countsByTopic(records: readonly LogRecord[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { topic } of records) counts[topic] = (counts[topic] ?? 0) + 1
  return counts
}
