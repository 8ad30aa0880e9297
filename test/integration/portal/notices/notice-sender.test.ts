/** The notices that the portal sends by itself: about keys, and about runaway traffic. */
import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { versions } from '../../../../contracts/api/versions.ts'
import type { EventWriter } from '../../../../services/log/port.ts'
import { type Announcement, announce } from '../../../../services/portal/notices/announcement.ts'
import { createKeyNotices, perAddressPerDayMax } from '../../../../services/portal/notices/key-notices.ts'
import { createNoticeSender, type NoticeParts } from '../../../../services/portal/notices/notice-sender.ts'
import { openNotices } from '../../../../services/portal/notices/notices.ts'
import { type Mail, MailError } from '../../../../services/portal/ports.ts'
import type { PortalStore } from '../../../../services/portal/store/port.ts'
import { openSqliteStore } from '../../../../services/portal/store/sqlite-store.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { accountRecord } from '../../../support/events/accounts.ts'
import { portalKey } from '../../../support/portal/app.ts'
import { type MailServer, startMailServer } from '../../../support/portal/mail-server.ts'
import { memoryMailer } from '../../../support/portal/memory-ports.ts'
import { compacted, type ProjectedLog, projectedJournal } from '../../../support/portal/projected-log.ts'
import { type ModelTables, openModelTables } from '../../../support/projector/model-tables.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
const portalUrl = 'https://portal.example'
const account = {
  ...{ account_id: 'acct_1', email: 'ada@example.com' },
  ...{ created_at: 0, sessions_valid_from: 0 },
}
const integration = { name: 'Backer Board', contact_email: 'ops@board.example' }

let now: number
let model: ModelTables
let log: ProjectedLog
let writer: EventWriter
let store: PortalStore
const closers: (() => unknown)[] = []
beforeAll(async () => {
  model = await openModelTables()
  log = await projectedJournal(model)
})
afterAll(async () => {
  await log?.close()
  await model?.dispose()
})
afterEach(async () => {
  for (const closer of closers.splice(0).reverse()) await closer()
})
beforeEach(async () => {
  now = Date.parse('2026-11-22T12:00:00Z')
  await log.clear()
  writer = await log.openWriter()
  store = openSqliteStore({ path: ':memory:', now: () => now })
  closers.push(() => store.close())
})

/** A portal of several, with the same store. */
function portal(changes: Partial<NoticeParts> = {}) {
  const { tables, databases } = log
  const parts = {
    ...{ tables, databases, store, portalKey, portalUrl, now: () => now },
    notices: openNotices({ writer, tables, databases }),
    logger: pino({ level: 'silent' }),
    ...changes,
  }
  const sender = createNoticeSender({
    ...parts,
    mailer: changes.mailer ?? memoryMailer(),
  })
  return { sender, notices: createKeyNotices(parts) }
}

/** What the ledger has of all notices. */
async function held(): Promise<string> {
  const rows = await log.tables.rows({
    query: `SELECT * FROM ${log.databases.base}.notice_ledger FINAL WHERE rule != ''`,
  })
  return JSON.stringify(rows)
}

const noAddressIsHeld = () => expect.poll(held).not.toContain('@')

/** Resolves when so many mails wait. */
async function waiting(mails: number): Promise<void> {
  await expect.poll(async () => (await held()).split('WAITING').length - 1).toBe(mails)
}

/** A key that was used in each of these minutes before now. */
async function haveKey(
  key: string,
  { minutes, ok, refused }: { minutes: number; ok: number; refused: number },
) {
  const { base } = log.databases
  const statements = [
    `INSERT INTO ${base}.api_key_ledger (api_key, version, account_id, integration_name, integration_contact_email, is_unrevoked)
     SELECT '${key}', 1, 'acct_1', 'Backer Board', '${key.toLowerCase()}@board.example', 1`,
    `INSERT INTO ${base}.api_keys (api_key, is_active) SELECT '${key}', 1`,
    `INSERT INTO ${base}.api_key_usage (api_key, minute, process, version, ok, too_many)
     SELECT '${key}', fromUnixTimestamp64Milli(${Math.floor(now / minuteMs) * minuteMs}, 'UTC') - toIntervalMinute(2 + number), 'p', 1,
       ${ok}, ${refused} FROM numbers(${minutes})`,
  ]
  for (const query of statements) await log.tables.run({ query: `${query} SETTINGS async_insert = 0` })
}

describe('a mail about a key', () => {
  let server: MailServer
  beforeEach(async () => {
    server = await startMailServer()
    closers.push(() => server.close())
  })

  test('goes to the account and to the contact, once, from several portals', async () => {
    const portals = [1, 2, 3].map(() => portal({ mailer: server.mailer() }))
    // A name cannot add a header, an addressee or a link (test/unit/portal/notices/texts.test.ts has any name).
    const hostile = { ...integration, name: 'Win\r\nBcc: eve@evil.example' }
    await portals[0]?.notices.created(account, hostile, 'pv_live_EXAMPLE1')
    await portals[0]?.notices.revoked(account, integration, 'pv_live_EXAMPLE1')
    await waiting(4)
    await Promise.all(portals.map(({ sender }) => sender.sendDue()))
    await Promise.all(portals.map(({ sender }) => sender.sendDue()))
    expect(server.counts()).toEqual({ 'ada@example.com': 2, 'ops@board.example': 2 })
    expect(server.mails.map(({ email }) => email.messageId)).toContain(
      '<pv_live_EXAMPLE1.KEY_REVOKED.contact@portal.example>',
    )
    await noAddressIsHeld()
  })

  test('that the server does not take is tried again later, and given up in the end', async () => {
    const mailer = memoryMailer()
    const { sender, notices } = portal({ mailer })
    mailer.fail(new Error('the mail server refused'))
    await notices.created(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    expect(await sender.sendDue()).toBe(0)
    mailer.fail(undefined)
    expect(await sender.sendDue()).toBe(0)
    now += minuteMs
    expect(await sender.sendDue()).toBe(1)
    await waiting(0)

    const refusedFor = async (hours: number) => {
      mailer.fail(new Error('the mail server refused'))
      for (let n = 0; n < hours * 2; n++) {
        await sender.sendDue()
        now += 30 * minuteMs
      }
      mailer.fail(undefined)
    }
    await notices.revoked(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    await refusedFor(22)
    now += 60 * minuteMs
    expect(await sender.sendDue()).toBe(1)
    await waiting(0)

    await notices.revoked(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE2')
    await waiting(1)
    await refusedFor(25)
    expect(await sender.sendDue()).toBe(0)
    await sender.look()
    await noAddressIsHeld()
  })

  test('that kills each portal that sends it is given up', async () => {
    let tries = 0
    const send = () => new Promise<never>(() => tries++)
    const { sender, notices } = portal({ mailer: { send } })
    await notices.created(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    for (let dead = 1; dead <= 30; dead++) {
      void sender.sendDue()
      await expect.poll(() => tries, { interval: 5 }).toBe(dead)
      now += 2 * minuteMs
    }
    expect(await sender.sendDue()).toBe(0)
    await noAddressIsHeld()
    expect(tries).toBe(30)
  })

  test('is tried in the next round, if a server that takes none has had its share of this one', async () => {
    const mailer = memoryMailer()
    const { tried } = mailer
    let texts = 0
    const counting: Tables['rows'] = async (...read) => {
      const rows = await log.tables.rows<{ text?: string }>(...read)
      texts += rows.filter(({ text }) => text !== undefined).length
      return rows as never
    }
    const place = { ...log, tables: { rows: counting } }
    const { sender, notices } = portal({ mailer, notices: openNotices({ writer, ...place }) })
    mailer.fail(new Error('the mail server refused'))
    const note = (email: string) =>
      notices.created({ ...account, email }, { ...integration, contact_email: email }, `pv_live_${email}`)
    await Promise.all(Array.from({ length: 60 }, (_, n) => note(`a${n}@example.com`)))
    await waiting(60)
    expect(await sender.sendDue()).toBe(0)
    expect(tried).toHaveLength(50)
    // Those that are not tried now may be many, and are not read.
    expect(texts).toBe(50)
    await note('late@example.com')
    await waiting(61)
    expect(await sender.sendDue()).toBe(0)
    expect(new Set(tried).size).toBe(61)
    expect(tried.slice(50)).toContain('late@example.com')
  })

  test('in doubt is sent once more, with the same Message-ID', async () => {
    const hanging = await startMailServer({ onData: () => undefined })
    closers.push(() => hanging.close())
    const first = portal({ mailer: hanging.mailer(300) })
    await first.notices.created(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    expect(await first.sender.sendDue()).toBe(0)
    const second = portal({ mailer: server.mailer() })
    expect(await second.sender.sendDue()).toBe(0)
    now += 5 * minuteMs
    expect(await second.sender.sendDue()).toBe(1)
    expect(server.mails[0]?.email.messageId).toBe('<pv_live_EXAMPLE1.KEY_CREATED.account@portal.example>')
  })

  test('is not sent once the account is deleted, and its address does not stay', async () => {
    const mailer = memoryMailer()
    const { sender, notices } = portal({ mailer })
    await notices.created(account, integration, 'pv_live_EXAMPLE1')
    await waiting(2)
    await writer.append([accountRecord(account.account_id, '')])
    await expect
      .poll(() => log.tables.rows({ query: `SELECT 1 FROM ${log.databases.base}.account_ledger` }))
      .toHaveLength(1)
    expect(await sender.sendDue()).toBe(0)
    await sender.look()
    await noAddressIsHeld()
    expect(mailer.mails).toEqual([])
  })

  test('to one address is bounded for a day, so that nobody floods a stranger', async () => {
    const mailer = memoryMailer()
    const { sender, notices } = portal({ mailer })
    const few = perAddressPerDayMax + 5
    await Promise.all(
      Array.from({ length: few }, (_, key) =>
        notices.created({ ...account, email: `a${key}@example.com` }, integration, `pv_live_EXAMP${key}`),
      ),
    )
    await waiting(few + perAddressPerDayMax)
    while ((await sender.sendDue()) > 0);
    expect(mailer.mails.filter(({ to }) => to === integration.contact_email)).toHaveLength(
      perAddressPerDayMax,
    )
  })

  test('leaves nothing after its time', async () => {
    const { sender, notices } = portal()
    await notices.created(account, integration, 'pv_live_AFTER001')
    await waiting(2)
    await sender.sendDue()
    await expect.poll(async () => (await held()).split('SENT')).toHaveLength(3)
    now += 31 * dayMs
    await sender.look()
    await expect.poll(held).toBe('[]')
    // The log has a tombstone of each, so compaction removes them there, too.
    const records = compacted(await log.records()).filter(({ key }) =>
      `${Buffer.from(key ?? [])}`.includes('AFTER'),
    )
    expect(records.map(({ value }) => value)).toEqual([null, null])
  })
})

describe('runaway traffic', () => {
  beforeEach(() => {
    now = Date.now()
  })

  test('is told to the contact once a day, and only where half was refused for a while', async () => {
    await haveKey('pv_live_RUNAWAY1', { minutes: 15, ok: 120, refused: 120 })
    await haveKey('pv_live_STEADY01', { minutes: 15, ok: 120, refused: 119 })
    await haveKey('pv_live_BURST001', { minutes: 1, ok: 120, refused: 9_000 })
    const server = await startMailServer()
    closers.push(() => server.close())
    const { sender } = portal({ mailer: server.mailer() })
    const look = async () => {
      await sender.look()
      await waiting(1)
      return sender.sendDue()
    }
    expect(await look()).toBe(1)
    expect(server.mails[0]?.email.text).toContain(
      'sent 3600 requests within 15 minutes.\n1800 of them were refused',
    )
    expect(server.counts()).toEqual({ 'pv_live_runaway1@board.example': 1 })
    // Another portal a moment later, with another turn.
    now += 5 * minuteMs
    const other = portal({ mailer: server.mailer() })
    await other.sender.look()
    expect(await other.sender.sendDue()).toBe(0)

    now += dayMs
    await log.tables.run({ query: `TRUNCATE TABLE ${log.databases.base}.api_key_usage` })
    await haveKey('pv_live_RUNAWAY1', { minutes: 15, ok: 0, refused: 500 })
    expect(await look()).toBe(1)
    expect(server.counts()).toEqual({ 'pv_live_runaway1@board.example': 2 })
  })

  test('is looked for by one portal at a time', async () => {
    let looks = 0
    const tables = {
      async rows() {
        looks++
        return []
      },
    }
    const portals = [1, 2, 3].map(() => portal({ tables }))
    await Promise.all(portals.map(({ sender }) => sender.look()))
    expect(looks).toBe(1)
    now += 5 * minuteMs
    await Promise.all(portals.map(({ sender }) => sender.look()))
    expect(looks).toBe(2)
  })
})

test('an announcement goes to each contact of an active key once, however often it is made', async () => {
  now = Date.now()
  await haveKey('pv_live_QUIET001', { minutes: 1, ok: 0, refused: 0 })
  await haveKey('pv_live_BUSY0001', { minutes: 1, ok: 1, refused: 0 })
  const server = await startMailServer()
  closers.push(() => server.close())
  const { sender, notices: ofKeys } = portal({ mailer: server.mailer() })
  const notices = openNotices({ ...log, writer })
  const announcement = { name: 'v1-ends', subject: 'Version 1 ends', text: 'In 2028.\n', isDry: false }
  const make = (change: Partial<Announcement> = {}) =>
    announce({ ...log, notices, portalKey }, { ...announcement, ...change }, now)
  const none = { invalid: 0, waiting: 0, sent: 0, given_up: 0 }

  expect(await make({ isDry: true, version: versions[0] })).toEqual({ ...none, addresses: 1, noted: 1 })
  expect(await held()).toBe('[]')
  const both = await Promise.all([make(), make()])
  // The later of the two may see what the other one has noted, or a part of it.
  expect(both.map(({ addresses, noted, waiting }) => [addresses, noted + waiting])).toEqual([
    [2, 2],
    [2, 2],
  ])
  await waiting(2)
  expect(await make()).toEqual({ ...none, addresses: 2, noted: 0, waiting: 2 })
  // What people wait for is sent before it.
  await ofKeys.created(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
  await waiting(3)
  expect(await sender.sendDue()).toBe(3)
  expect(server.mails.map(({ email }) => email.subject)).toEqual([
    'A new API key was created',
    ...['Version 1 ends', 'Version 1 ends'],
  ])
  expect(server.counts()).toMatchObject({
    'pv_live_quiet001@board.example': 1,
    'pv_live_busy0001@board.example': 1,
  })
  await noAddressIsHeld()
  expect(await make()).toEqual({ ...none, addresses: 2, noted: 0, sent: 2 })
  expect(await sender.sendDue()).toBe(0)
})

test('an announcement that was given up is noted again by the next run, and no other', async () => {
  now = Date.now()
  await haveKey('pv_live_QUIET001', { minutes: 1, ok: 0, refused: 0 })
  await haveKey('pv_live_GONE0001', { minutes: 1, ok: 0, refused: 0 })
  let refusal: MailError | undefined = new MailError('no such user', { isRefusedAddress: true })
  const sent: string[] = []
  const send = async ({ to }: Mail) => {
    if (refusal !== undefined && to.includes('gone')) throw refusal
    sent.push(to)
  }
  const { sender } = portal({ mailer: { send } })
  const notices = openNotices({ ...log, writer })
  const announcement = { name: 'v1-ends', subject: 'Version 1 ends', text: 'In 2028.\n', isDry: false }
  const make = () => announce({ ...log, notices, portalKey }, announcement, now)
  for (let run = 1; run <= 3; run++) {
    await make()
    await waiting(run === 1 ? 2 : 1)
    if (run === 3) refusal = undefined
    await sender.sendDue()
    await waiting(0)
  }
  expect(sent.sort()).toEqual(['pv_live_gone0001@board.example', 'pv_live_quiet001@board.example'])
  const settled = { addresses: 2, invalid: 0, waiting: 0, sent: 2, given_up: 2 }
  expect(await make()).toEqual({ ...settled, noted: 0 })
})
