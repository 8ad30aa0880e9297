/** Announcements reach each contact once, and again those of which a mail was given up. */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { versions } from '../../../../contracts/api/versions.ts'
import type { EventWriter } from '../../../../services/log/port.ts'
import { type Announcement, announce } from '../../../../services/portal/notices/announcement.ts'
import { openNotices } from '../../../../services/portal/notices/notices.ts'
import { type Mail, MailError } from '../../../../services/portal/ports.ts'
import { portalKey } from '../../../support/portal/app.ts'
import { startMailServer } from '../../../support/portal/mail-server.ts'
import { account, useNotices } from '../../../support/portal/notices-world.ts'

const world = useNotices()
const { portal, held, noAddressIsHeld, waiting, haveKey } = world
const ofLog = () => openNotices({ ...world.log, writer: world.writer })

function make(change: Partial<Announcement> = {}) {
  const announcement = { name: 'v1-ends', subject: 'Version 1 ends', text: 'In 2028.\n', isDry: false }
  return announce({ ...world.log, notices: ofLog(), portalKey }, { ...announcement, ...change }, world.now)
}

beforeEach(async () => {
  world.now = Date.now()
  await haveKey('pv_live_QUIET001', { minutes: 1, ok: 0, refused: 0 })
})

test('an announcement goes to each contact of an active key once, however often it is made', async () => {
  await haveKey('pv_live_BUSY0001', { minutes: 1, ok: 1, refused: 0 })
  const server = await startMailServer()
  onTestFinished(() => server.close())
  const { sender, notices: ofKeys } = portal({ mailer: server.mailer() })
  const none = { invalid: 0, waiting: 0, sent: 0, given_up: 0, settled_before: 0 }

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
  await ofKeys.created(account, { name: 'Backer Board', contact_email: account.email }, 'pv_live_EXAMPLE1')
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
  // Nothing is kept of them after 30 days, but that they were.
  await ofLog().removeSettled(world.now + 1)
  await expect.poll(held).toBe('[]')
  expect(await make()).toEqual({ ...none, addresses: 2, noted: 0, settled_before: 2 })
})

test('an announcement that was given up is noted again by the next run, and no other', async () => {
  await haveKey('pv_live_GONE0001', { minutes: 1, ok: 0, refused: 0 })
  let refusal: MailError | undefined = new MailError('no such user', { isRefusedAddress: true })
  const sent: string[] = []
  const send = async ({ to }: Mail) => {
    if (refusal !== undefined && to.includes('gone')) throw refusal
    sent.push(to)
  }
  const { sender } = portal({ mailer: { send } })
  for (let run = 1; run <= 3; run++) {
    await make()
    await waiting(run === 1 ? 2 : 1)
    if (run === 3) refusal = undefined
    await sender.sendDue()
    await waiting(0)
  }
  expect(sent.sort()).toEqual(['pv_live_gone0001@board.example', 'pv_live_quiet001@board.example'])
  const settled = { addresses: 2, invalid: 0, waiting: 0, sent: 2, given_up: 2, settled_before: 0 }
  expect(await make()).toEqual({ ...settled, noted: 0 })
})

test('an announcement that was sent while the log was away is not made again', async () => {
  let sent = 0
  let isAway = false
  const send = async () => {
    sent++
    isAway = true
  }
  const append: EventWriter['append'] = records => {
    if (isAway) throw new Error('the log is away')
    return world.writer.append(records)
  }
  const notices = openNotices({ ...world.log, writer: { append } })
  const { sender } = portal({ mailer: { send }, notices })
  await make()
  await waiting(1)
  await expect(sender.sendDue()).rejects.toThrow('the log is away')
  isAway = false
  world.now += 86_400_001
  expect(await sender.sendDue()).toBe(0)
  await sender.look()
  await waiting(0)
  expect(await make()).toMatchObject({ noted: 0, sent: 1, given_up: 0 })
  expect(sent).toBe(1)
})
