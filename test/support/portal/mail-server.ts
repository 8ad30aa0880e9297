/** A mail server that keeps what it took, and mailers that send to it. */
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { createSmtpMailer } from '../../../services/portal/notices/smtp-mailer.ts'
import type { Mailer } from '../../../services/portal/ports.ts'

export type MailServer = Awaited<ReturnType<typeof startMailServer>>

export async function startMailServer(options: SMTPServerOptions = {}) {
  const mails: { to: string[]; email: Email }[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    async onData(stream, session, done) {
      const to = session.envelope.rcptTo.map(({ address }) => address)
      mails.push({ to, email: await PostalMime.parse(await text(stream)) })
      done()
    },
    ...options,
  })
  // A client that is killed breaks its connection.
  server.on('error', () => undefined)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`
  const mailers: Mailer[] = []
  return {
    url,
    mails,
    /** How many mails each address has. */
    counts() {
      const counts: Record<string, number> = {}
      for (const address of mails.flatMap(({ to }) => to)) counts[address] = (counts[address] ?? 0) + 1
      return counts
    },
    mailer(sendMsMax = 15_000) {
      const mailer = createSmtpMailer({ url, from: 'Pledgeview <no-reply@portal.example>', sendMsMax })
      mailers.push(mailer)
      return mailer
    },
    async close() {
      for (const mailer of mailers) await mailer.close()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}
