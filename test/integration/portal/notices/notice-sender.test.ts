/** The notices that the portal sends by itself: about keys, and about runaway traffic. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { perAddressPerDayMax } from '../../../../services/portal/notices/key-notices.ts'
import { accountRecord } from '../../../support/events/accounts.ts'
import { type MailServer, startMailServer } from '../../../support/portal/mail-server.ts'
import { memoryMailer } from '../../../support/portal/memory-ports.ts'
import { account, minuteMs, useNotices } from '../../../support/portal/notices-world.ts'
import { compacted } from '../../../support/portal/projected-log.ts'

const dayMs = 86_400_000
const integration = { name: 'Backer Board', contact_email: 'ops@board.example' }
const world = useNotices()
const { portal, held, noAddressIsHeld, waiting, haveKey } = world

describe('a mail about a key', () => {
  let server: MailServer
  beforeEach(async () => {
    server = await startMailServer()
    return () => server.close()
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

  test('does not stay if there is no mail server any more', async () => {
    await portal().notices.created(account, integration, 'pv_live_EXAMPLE1')
    await waiting(2)
    const { sender } = portal({ mailer: undefined })
    await sender.look()
    expect(await sender.sendDue()).toBe(0)
    world.now += dayMs + minuteMs
    await sender.look()
    await waiting(0)
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
    world.now += minuteMs
    expect(await sender.sendDue()).toBe(1)
    await waiting(0)

    const refusedFor = async (hours: number) => {
      mailer.fail(new Error('the mail server refused'))
      for (let n = 0; n < hours * 2; n++) {
        await sender.sendDue()
        world.now += 30 * minuteMs
      }
      mailer.fail(undefined)
    }
    await notices.revoked(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    await refusedFor(22)
    world.now += 60 * minuteMs
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
      world.now += 2 * minuteMs
    }
    expect(await sender.sendDue()).toBe(0)
    await noAddressIsHeld()
    expect(tries).toBe(30)
  })

  test('is tried in the next round, if a server that takes none has had its share of this one', async () => {
    const mailer = memoryMailer()
    const { tried } = mailer
    const { sender, notices } = portal({ mailer })
    mailer.fail(new Error('the mail server refused'))
    const note = (email: string) =>
      notices.created({ ...account, email }, { ...integration, contact_email: email }, `pv_live_${email}`)
    await Promise.all(Array.from({ length: 60 }, (_, n) => note(`a${n}@example.com`)))
    await waiting(60)
    expect(await sender.sendDue()).toBe(0)
    expect(tried).toHaveLength(50)
    await note('late@example.com')
    await waiting(61)
    expect(await sender.sendDue()).toBe(0)
    expect(new Set(tried).size).toBe(61)
    expect(tried.slice(50)).toContain('late@example.com')
  })

  test('in doubt is sent once more, with the same Message-ID', async () => {
    const hanging = await startMailServer({ onData: () => undefined })
    onTestFinished(() => hanging.close())
    const first = portal({ mailer: hanging.mailer(300) })
    await first.notices.created(account, { ...integration, contact_email: account.email }, 'pv_live_EXAMPLE1')
    await waiting(1)
    expect(await first.sender.sendDue()).toBe(0)
    const second = portal({ mailer: server.mailer() })
    expect(await second.sender.sendDue()).toBe(0)
    world.now += 5 * minuteMs
    expect(await second.sender.sendDue()).toBe(1)
    expect(server.mails[0]?.email.messageId).toBe('<pv_live_EXAMPLE1.KEY_CREATED.account@portal.example>')
  })

  test('is not sent once the account is deleted, and its address does not stay', async () => {
    const mailer = memoryMailer()
    const { sender, notices } = portal({ mailer })
    await notices.created(account, integration, 'pv_live_EXAMPLE1')
    await waiting(2)
    await world.writer.append([accountRecord(account.account_id, '')])
    await expect
      .poll(() =>
        world.log.tables.rows({ query: `SELECT 1 FROM ${world.log.databases.base}.account_ledger` }),
      )
      .toHaveLength(1)
    expect(await sender.sendDue()).toBe(0)
    await sender.look()
    await noAddressIsHeld()
    expect(mailer.mails).toEqual([])
  })

  test('to one address is bounded for a day, so that nobody floods a stranger; its owner’s, and one about traffic, come all the same', async () => {
    world.now = Date.now()
    await haveKey('pv_live_RUNAWAY1', { minutes: 15, ok: 120, refused: 120 })
    const email = 'pv_live_runaway1@board.example'
    const mailer = memoryMailer()
    const { sender, notices } = portal({ mailer })
    const ofAddress = { ...integration, contact_email: email }
    const strangers = Array.from({ length: perAddressPerDayMax + 5 }, (_, n) => `a${n}@example.com`)
    await Promise.all(
      strangers.map((stranger, n) =>
        notices.created({ ...account, email: stranger }, ofAddress, `pv_live_EXAMP${n}`),
      ),
    )
    await notices.created({ ...account, email }, ofAddress, 'pv_live_OWNKEY00')
    await sender.look()
    await waiting(strangers.length + perAddressPerDayMax + 2)
    while ((await sender.sendDue()) > 0);
    const texts = mailer.mails.filter(({ to }) => to === email).map(({ text }) => text)
    expect(texts).toHaveLength(perAddressPerDayMax + 2)
    for (const part of ['pv_live_OWNKEY00', 'were refused'])
      expect(texts.filter(text => text.includes(part))).toHaveLength(1)
  })

  test('leaves nothing after its time', async () => {
    const { sender, notices } = portal()
    await notices.created(account, integration, 'pv_live_AFTER001')
    await waiting(2)
    await sender.sendDue()
    await expect.poll(async () => (await held()).split('SENT')).toHaveLength(3)
    world.now += 31 * dayMs
    await sender.look()
    await expect.poll(held).toBe('[]')
    // The log has a tombstone of each, so compaction removes them there, too.
    const records = compacted(await world.log.records()).filter(({ key }) =>
      `${Buffer.from(key ?? [])}`.includes('AFTER'),
    )
    expect(records.map(({ value }) => value)).toEqual([null, null])
  })
})

describe('runaway traffic', () => {
  // The id of a mail has the day (UTC), which ends between two looks.
  beforeEach(() => {
    world.now = Math.floor(Date.now() / dayMs) * dayMs - minuteMs
  })

  test('is told to the contact once a day, and only where half was refused for a while', async () => {
    await haveKey('pv_live_RUNAWAY1', { minutes: 15, ok: 120, refused: 120 })
    await haveKey('pv_live_STEADY01', { minutes: 15, ok: 120, refused: 119 })
    await haveKey('pv_live_BURST001', { minutes: 1, ok: 120, refused: 9_000 })
    const server = await startMailServer()
    onTestFinished(() => server.close())
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
    world.now += 5 * minuteMs
    const other = portal({ mailer: server.mailer() })
    const noted = await world.log.records()
    await other.sender.look()
    expect(await world.log.records()).toEqual(noted)

    world.now += dayMs
    await world.log.tables.run({ query: `TRUNCATE TABLE ${world.log.databases.base}.api_key_usage` })
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
    world.now += 5 * minuteMs
    await Promise.all(portals.map(({ sender }) => sender.look()))
    expect(looks).toBe(2)
  })
})
