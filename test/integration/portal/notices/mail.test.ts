import type { SMTPServerOptions } from 'smtp-server'
import { expect, onTestFinished, test } from 'vitest'
import { createSmtpMailer } from '../../../../services/portal/notices/smtp-mailer.ts'
import type { Mail } from '../../../../services/portal/ports.ts'
import { smtpMailer } from '../../../../services/portal/service.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'
import { startMailServer } from '../../../support/portal/mail-server.ts'

const mail: Mail = {
  id: 'sign-in-1',
  to: 'ada@example.com',
  subject: 'Sign in',
  text: 'Your code: 1234 5678\n',
}

async function mailServer(options: SMTPServerOptions = {}) {
  const server = await startMailServer(options)
  onTestFinished(() => server.close())
  return server
}

test('a mail arrives as it was written, with a Message-ID from its id', async () => {
  const { mails, mailer } = await mailServer()
  await mailer().send(mail)
  expect(mails).toHaveLength(1)
  expect(mails[0]?.to).toEqual(['ada@example.com'])
  expect(mails[0]?.email).toMatchObject({
    subject: 'Sign in',
    text: 'Your code: 1234 5678\n',
    messageId: '<sign-in-1@portal.example>',
    from: { name: 'Pledgeview', address: 'no-reply@portal.example' },
  })
  expect(mails[0]?.email.html).toBeUndefined()
})

test('nothing in a mail can add a header or an addressee', async () => {
  const { mails, mailer } = await mailServer()
  await mailer().send({ ...mail, subject: 'Key of Board\r\nBcc: eve@example.com', text: '.\r\nRSET\r\n' })
  expect(mails[0]?.to).toEqual(['ada@example.com'])
  expect(mails[0]?.email.bcc ?? []).toEqual([])
  expect(mails[0]?.email.text).toBe('.\nRSET\n')
})

test.each<[string, SMTPServerOptions, boolean]>([
  ['its address', { onRcptTo: (_address, _session, done) => done(refusal('5.1.1')) }, true],
  ['its address, without saying why', { onRcptTo: (_address, _session, done) => done(refusal('')) }, true],
  ['every address', { onRcptTo: (_address, _session, done) => done(refusal('5.7.1')) }, false],
  ['the sender', { onMailFrom: (_address, _session, done) => done(refusal('5.1.1')) }, false],
  ['the sender, later', { onRcptTo: (_address, _session, done) => done(refusal('5.1.8')) }, false],
  ['what exceeds a quota', { onRcptTo: (_address, _session, done) => done(refusal('5.4.5')) }, false],
  ['its text', { onData: (_stream, _session, done) => done(refusal('5.1.1')) }, false],
])(
  'a mail of which the server refuses %s: a refused address is told from a server that fails, without the address',
  async (_, options, isRefusedAddress) => {
    const { mailer } = await mailServer({ hideENHANCEDSTATUSCODES: true, ...options })
    const error = await mailer()
      .send(mail)
      .catch((cause: unknown) => cause)
    expect(error).toMatchObject({ name: 'MailError', isRefusedAddress })
    expect(String(error)).toMatch(/^MailError: the mail server refused: E\w+ 550$/)
  },
)

const refusal = (status: string) =>
  Object.assign(new Error(`${status} no such user ada@example.com`.trim()), { responseCode: 550 })

test('a server that hangs holds up a mail for a bounded time, and a bounded number of them', async () => {
  const { url } = await mailServer({ onData: () => undefined })
  const mailer = createSmtpMailer({ url, from: 'a@portal.example', sendMsMax: 300, inFlightMax: 2 })
  onTestFinished(() => mailer.close())
  const waiting = [mailer.send(mail), mailer.send(mail)]
  const ended = Promise.allSettled(waiting)
  await expect(mailer.send(mail)).rejects.toThrow('too many mails')
  for (const { reason } of (await ended) as PromiseRejectedResult[])
    expect(reason).toMatchObject({ message: 'no answer within 300 ms' })
})

test('a portal counts the mails that the server took and those that it did not take, without those with a wrong address', async () => {
  const { url } = await mailServer({
    hideENHANCEDSTATUSCODES: true,
    onRcptTo({ address }, _session, done) {
      if (address === 'ada@example.com') return done()
      done(refusal(address === 'eve@example.com' ? '5.1.1' : '5.7.1'))
    },
  })
  const metrics = createMetrics()
  const mailer = smtpMailer(readConfig({ PLEDGEVIEW_SMTP_URL: url }), metrics)
  onTestFinished(() => mailer?.close())
  for (const to of ['ada@example.com', 'eve@example.com', 'bob@example.com'])
    await mailer?.send({ ...mail, to }).catch(() => undefined)
  const { values } = await metrics.mails.get()
  expect(values.map(({ labels, value }) => [labels.outcome, value])).toEqual([
    ['sent', 1],
    ['failed', 1],
  ])
})

test.each([
  ['gets no mail', '', '', 0],
  ['gets mails if the operator has turned TLS off', '', '?tls=off', 1],
  ['gets no password, also if the operator has turned TLS off', 'user:password@', '?tls=off', 0],
])('a server without TLS that is not named as the loopback %s', async (_, user, options, count) => {
  const { mails, url } = await mailServer()
  const address = `smtp://${user}0.0.0.0:${new URL(url).port}${options}`
  const mailer = createSmtpMailer({ url: address, from: 'a@portal.example', sendMsMax: 5_000 })
  onTestFinished(() => mailer.close())
  const error = await mailer.send(mail).catch((cause: unknown) => cause)
  expect(mails).toHaveLength(count)
  if (count === 0) expect(String(error)).toContain('the mail server refused: E')
})
