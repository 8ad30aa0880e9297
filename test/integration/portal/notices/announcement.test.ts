/** `pledgeview notify`: one mail to each address, once, whatever happens to the sender. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Announcement, announce } from '../../../../services/portal/notices/announcement.ts'
import type { Mailer } from '../../../../services/portal/ports.ts'
import { openSqliteStore } from '../../../../services/portal/store/sqlite-store.ts'
import { portalKey } from '../../../support/portal/app.ts'
import { type MailServer, startMailServer } from '../../../support/portal/mail-server.ts'
import type { NotifyChildArguments } from '../../../support/portal/notify-child.ts'

const child = new URL('../../../support/portal/notify-child.ts', import.meta.url)
const minuteMs = 60_000
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const closer of closers.splice(0).reverse()) await closer()
})

const addresses = Array.from({ length: 12 }, (_, index) => `contact-${index}@example.com`)
const announcement: Announcement = {
  name: 'v1-ends',
  subject: 'Version 1 ends',
  text: 'It ends in 2028.\n',
  addresses,
  isDry: false,
  retriesDoubtful: false,
}
const onceEach = Object.fromEntries(addresses.map(address => [address, 1]))

let storePath: string
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), 'notices-'))
  closers.push(() => rmSync(directory, { recursive: true }))
  storePath = join(directory, 'portal.sqlite')
})

/** One process that sends: its own store, and a clock that may be ahead. */
function senderOn(mailer: Mailer, { aheadMs = 0 } = {}) {
  const now = () => Date.now() + aheadMs
  const store = openSqliteStore({ path: storePath, now })
  closers.push(() => store.close())
  const { signal } = new AbortController()
  return (change: Partial<Announcement> = {}) =>
    announce({ store, mailer, portalKey, now, signal }, { ...announcement, ...change })
}

describe('an announcement', () => {
  let server: MailServer
  const sender = (options: { aheadMs?: number } = {}) => senderOn(server.mailer(), options)

  beforeEach(async () => {
    server = await startMailServer()
    closers.push(() => server.close())
  })

  test('reaches every address once, with a Message-ID of its own, and a second run sends nothing', async () => {
    const send = sender()
    expect(await send()).toMatchObject({ sent: 12, left: 0, doubtful: [] })
    expect(server.counts()).toEqual(onceEach)
    expect(new Set(server.mails.map(({ email }) => email.messageId)).size).toBe(12)
    expect(server.mails[0]?.email).toMatchObject({ subject: 'Version 1 ends', text: 'It ends in 2028.\n' })
    expect(await sender()()).toMatchObject({ sent: 0, alreadySent: 12 })
    expect(server.mails).toHaveLength(12)
  })

  test('two senders at once send to nobody twice', async () => {
    const senders = [sender(), sender(), sender()]
    const reports = await Promise.all(senders.map(send => send()))
    expect(server.counts()).toEqual(onceEach)
    expect(reports.reduce((sum, { sent }) => sum + sent, 0)).toBe(12)
    expect(reports.map(({ doubtful }) => doubtful)).toEqual([[], [], []])
  })

  test('a dry run sends nothing, writes nothing, and says what it would do', async () => {
    const send = sender()
    expect(await send({ isDry: true })).toMatchObject({ sent: 0, left: 12, doubtful: [] })
    expect(readFileSync(storePath).includes('v1-ends')).toBe(false)
    await send({ addresses: addresses.slice(0, 5) })
    expect(await send({ isDry: true })).toMatchObject({ sent: 0, left: 7, alreadySent: 5 })
    expect(server.mails).toHaveLength(5)
  })

  test('no address and no text stays in the store', async () => {
    await sender()()
    const kept = `${readFileSync(storePath)}${readFileSync(`${storePath}-wal`)}`
    expect(kept).toContain('v1-ends')
    expect(kept).not.toContain('@example.com')
    expect(kept).not.toContain('It ends')
  })

  test('killed while it sends, it goes on; who was being sent to is in doubt, and gets nothing until asked', async () => {
    // The server takes five mails, and then holds the sixth without an answer.
    const held = Promise.withResolvers<string>()
    let taken = 0
    const slow = await startMailServer({
      onRcptTo(address, _session, done) {
        if (taken++ === 5) held.resolve(address.address)
        else done()
      },
    })
    closers.push(() => slow.close())
    const childArguments: NotifyChildArguments = {
      ...{ store: storePath, smtpUrl: slow.url, announcement },
    }
    const killed = fork(child, [JSON.stringify(childArguments)], { execPath: process.execPath })
    const inDoubt = await held.promise
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    expect(slow.mails).toHaveLength(5)

    const later = sender({ aheadMs: 5 * minuteMs })
    expect(await later()).toMatchObject({ sent: 6, alreadySent: 5, left: 0, doubtful: [inDoubt] })
    expect(server.counts()[inDoubt]).toBeUndefined()
    expect(await later({ isDry: true })).toMatchObject({ left: 0, doubtful: [inDoubt] })
    expect(await later({ retriesDoubtful: true })).toMatchObject({ sent: 1, doubtful: [] })
    const both = [...slow.mails, ...server.mails].flatMap(({ to }) => to)
    expect(both.sort()).toEqual([...addresses].sort())
  })

  test('a server that hangs leaves few in doubt', async () => {
    const hanging = await startMailServer({ onData: () => undefined })
    closers.push(() => hanging.close())
    const report = await senderOn(hanging.mailer(200))()
    expect(report).toMatchObject({ sent: 0, left: 7, lastFailure: 'no answer within 200 ms' })
    expect(report.doubtful).toHaveLength(5)
  })

  test('an address that the server refuses is not tried again', async () => {
    const refusal = Object.assign(new Error('no such user'), { responseCode: 550 })
    const refusing = await startMailServer({ onRcptTo: (_address, _session, done) => done(refusal) })
    closers.push(() => refusing.close())
    expect(await senderOn(refusing.mailer())()).toMatchObject({ refused: 12, left: 0 })
    expect(await sender()()).toMatchObject({ refused: 12, sent: 0 })
    expect(server.mails).toEqual([])
  })

  test('a name stands for one text', async () => {
    const send = sender()
    await send()
    await expect(send({ text: 'Another text.\n' })).rejects.toThrow('--id v1-ends was used for another')
  })
})
