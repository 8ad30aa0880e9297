/** Portals that send notices, with the tables that they read and a clock that a test sets. */
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { EventWriter } from '../../../services/log/port.ts'
import { createKeyNotices } from '../../../services/portal/notices/key-notices.ts'
import { createNoticeSender, type NoticeParts } from '../../../services/portal/notices/notice-sender.ts'
import { openNotices } from '../../../services/portal/notices/notices.ts'
import type { PortalStore } from '../../../services/portal/store/port.ts'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { type ModelTables, openModelTables } from '../projector/model-tables.ts'
import { portalKey } from './app.ts'
import { memoryMailer } from './memory-ports.ts'
import { type ProjectedLog, projectedJournal } from './projected-log.ts'

export const minuteMs = 60_000
export const account = {
  ...{ account_id: 'acct_1', email: 'ada@example.com' },
  ...{ created_at: 0, sessions_valid_from: 0 },
}
const portalUrl = 'https://portal.example'

/** Call once in a file, at its top level. */
export function useNotices() {
  let model: ModelTables
  let store: PortalStore
  const world = {
    /** The time of all portals, Unix ms. */
    now: 0,
    log: undefined as unknown as ProjectedLog,
    writer: undefined as unknown as EventWriter,
    portal,
    held,
    noAddressIsHeld: () => expect.poll(held).not.toContain('@'),
    waiting,
    haveKey,
  }
  beforeAll(async () => {
    model = await openModelTables()
    world.log = await projectedJournal(model)
  })
  afterAll(async () => {
    await world.log?.close()
    await model?.dispose()
  })
  beforeEach(async () => {
    world.now = Date.parse('2026-11-22T12:00:00Z')
    await world.log.clear()
    world.writer = await world.log.openWriter()
    store = openSqliteStore({ path: ':memory:', now: () => world.now })
    return () => store.close()
  })
  return world

  /** A portal of several, with the same store. */
  function portal(changes: Partial<NoticeParts> = {}) {
    const { tables, databases } = world.log
    const parts = {
      ...{ tables, databases, store, portalKey, portalUrl, now: () => world.now },
      notices: openNotices({ writer: world.writer, tables, databases }),
      logger: pino({ level: 'silent' }),
      ...changes,
    }
    const sender = createNoticeSender({
      ...parts,
      mailer: 'mailer' in changes ? changes.mailer : memoryMailer(),
    })
    return { sender, notices: createKeyNotices(parts) }
  }

  /** What the ledger has of all notices. */
  async function held(): Promise<string> {
    const rows = await world.log.tables.rows({
      query: `SELECT * FROM ${world.log.databases.base}.notice_ledger FINAL WHERE rule != ''`,
    })
    return JSON.stringify(rows)
  }

  /** Resolves when so many mails wait. */
  async function waiting(mails: number): Promise<void> {
    await expect.poll(async () => (await held()).split('WAITING').length - 1).toBe(mails)
  }

  /** A key that was used in each of these minutes before now. */
  async function haveKey(
    key: string,
    { minutes, ok, refused }: { minutes: number; ok: number; refused: number },
  ) {
    const { tables, databases } = world.log
    const statements = [
      `INSERT INTO ${databases.base}.api_key_ledger (api_key, version, account_id, integration_name, integration_contact_email, is_unrevoked)
       SELECT '${key}', 1, 'acct_1', 'Backer Board', '${key.toLowerCase()}@board.example', 1`,
      `INSERT INTO ${databases.base}.api_keys (api_key, is_active) SELECT '${key}', 1`,
      `INSERT INTO ${databases.base}.api_key_usage (api_key, minute, process, version, ok, too_many)
       SELECT '${key}', fromUnixTimestamp64Milli(${Math.floor(world.now / minuteMs) * minuteMs}, 'UTC') - toIntervalMinute(2 + number), 'p', 1,
         ${ok}, ${refused} FROM numbers(${minutes})`,
    ]
    for (const query of statements) await tables.run({ query: `${query} SETTINGS async_insert = 0` })
  }
}
