/** State topics in the journal: the promises, and that they take nothing from the event log beside them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { compactJournal } from '../../../services/shared/event-log/journal/compact.ts'
import { openJournalReader, openJournalWriter } from '../../../services/shared/event-log/journal/journal.ts'
import { openJournalStateTopic } from '../../../services/shared/event-log/journal/state-topic.ts'
import { accountEvent as account, accountChange as change, noticeChange } from '../../support/accounts.ts'
import { filesWith } from '../../support/find-texts.ts'
import { silent } from '../../support/kafka/topics.ts'
import { describeStateTopic } from './state-topic.conformance.ts'

const day = 86_400_000

describeStateTopic('in a journal', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'state-topic-'))
  const path = join(directory, 'journal.sqlite')
  return {
    open: (logger, options) => openJournalStateTopic(path, 'accounts', { logger }, options),
    async appendRaw(key, value) {
      const db = new DatabaseSync(path, { timeout: 5_000 })
      db.prepare('INSERT INTO state_accounts (appended_at, key, value) VALUES (0, ?, ?)').run(key, value)
      db.close()
    },
    compact: async () => void (await compact(path)),
    remove: async () => rmSync(directory, { recursive: true }),
  }
})

function compact(path: string, { isDry = false, now = Date.now(), rewriteBytesMax = Infinity } = {}) {
  return compactJournal(path, { versionOf: () => 1n, removesRejects: false, isDry, rewriteBytesMax, now })
}

test('opening state topics leaves the journal readable for its projector, and for a program that does not know them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'state-topic-'))
  const path = join(directory, 'journal.sqlite')
  const writer = await openJournalWriter(path)
  await writer.append([{ topic: 'campaigns', key: Buffer.from('c'), value: Buffer.from('v') }])
  const accounts = await openJournalStateTopic(path, 'accounts', { logger: silent })
  await accounts.write([change('a')])
  const reader = await openJournalReader(path, { consumer: 'projector' })
  const bounds = { recordsMax: 10, bytesMax: 1_000_000, waitMsMax: 0 }
  const { records } = await reader.poll(bounds, new AbortController().signal)
  expect(records.map(({ topic }) => topic)).toEqual(['campaigns'])
  const db = new DatabaseSync(path, { readOnly: true })
  expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1 })
  db.close()
  for (const part of [accounts, reader, writer]) await part.close()
  rmSync(directory, { recursive: true })
})

test('notices are kept beside accounts, and neither shows the other', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'state-topic-'))
  const path = join(directory, 'journal.sqlite')
  const notices = await openJournalStateTopic(path, 'notices', { logger: silent })
  const accounts = await openJournalStateTopic(path, 'accounts', { logger: silent })
  await Promise.all([notices.write([noticeChange('n')]), accounts.write([change('a')])])
  expect((await notices.all()).map(({ key }) => key)).toEqual(['n'])
  expect((await accounts.all()).map(({ key }) => key)).toEqual(['a'])
  for (const part of [notices, accounts]) await part.close()
  rmSync(directory, { recursive: true })
})

test('a purge leaves no byte of a deleted account in the files, keeps its tombstone for a week, and then removes that too', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'state-topic-'))
  const path = join(directory, 'journal.sqlite')
  const topic = await openJournalStateTopic(path, 'accounts', { logger: silent }, { now: () => 10 * day })
  await topic.write([change('a', 'gone@one.example'), change('b', 'former@one.example')])
  await topic.write([{ key: 'a', state: null }, change('b', 'kept@one.example')])
  expect(filesWith(directory, ['gone@one.example', 'former@one.example'])).not.toEqual([])
  expect(await compact(path, { isDry: true, now: 10 * day })).toMatchObject({ states: 2, records: 0 })
  expect(await compact(path, { now: 10 * day, rewriteBytesMax: 0 })).toMatchObject({ states: 2 })
  expect(filesWith(directory, ['gone@one.example', 'former@one.example'])).toEqual([])
  const fresh = await openJournalStateTopic(path, 'accounts', { logger: silent })
  expect(await fresh.all()).toEqual([{ key: 'b', state: account('b', 'kept@one.example') }])
  expect(await compact(path, { now: 16 * day })).toMatchObject({ states: 0 })
  expect(await compact(path, { now: 18 * day })).toMatchObject({ states: 1 })
  expect(await fresh.get('b')).toEqual(account('b', 'kept@one.example'))
  for (const part of [topic, fresh]) await part.close()
  rmSync(directory, { recursive: true })
})
