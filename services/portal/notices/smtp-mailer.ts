/**
 * Mails over SMTP. A mail is sent once: it is in the server's hands, or `send` throws. The time and the number of mails in
 * flight are bounded, so a server that hangs cannot hold up the portal.
 */
import { isIPv4 } from 'node:net'
import { createTransport, type NodemailerError } from 'nodemailer'
import { within } from '../../runtime/async/sleep.ts'
import { type Mail, MailError, type Mailer } from '../ports.ts'

export interface SmtpMailerOptions {
  /** `smtp://user:password@host:587` or `smtps://`. With `?tls=off`, mails may go without TLS, but never a password. */
  url: string
  /** `Name <address>` */
  from: string
  /** Time limit of one mail, ms. Default 15 s. */
  sendMsMax?: number
  /** Mails that wait or are being sent. More are refused at once. Default 50. */
  inFlightMax?: number
}

const connectionsMax = 3

/** Does not connect before the first mail. */
export function createSmtpMailer(options: SmtpMailerOptions): Mailer {
  const { url, from, sendMsMax = 15_000, inFlightMax = 50 } = options
  const server = new URL(url)
  const isTlsOff = server.searchParams.get('tls') === 'off'
  server.searchParams.delete('tls')
  const transport = createTransport({
    ...{ url: server.href },
    pool: true,
    maxConnections: connectionsMax,
    connectionTimeout: sendMsMax,
    greetingTimeout: sendMsMax,
    socketTimeout: sendMsMax,
    // Mails carry codes and links that sign people in. Nobody listens between two processes of one machine.
    requireTLS: !isLoopback(server.hostname) && (server.username !== '' || !isTlsOff),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const host = /@([\w.-]+)>?$/.exec(from)?.[1] ?? 'localhost'
  const late = () => new MailError(`no answer within ${sendMsMax} ms`)
  let inFlight = 0

  return {
    async send(mail) {
      if (inFlight >= inFlightMax) throw new MailError('too many mails are being sent')
      inFlight++
      const sent = transport.sendMail(messageOf(mail, from, host)).finally(() => inFlight--)
      // It may fail after its time.
      sent.catch(() => undefined)
      await within(sendMsMax, sent, late).catch((error: unknown) => {
        throw failureOf(error)
      })
    },
    async close() {
      transport.close()
    },
  }
}

function messageOf({ id, to, subject, text }: Mail, from: string, host: string) {
  return {
    from,
    // As an object: the text of an address is not parsed, so it cannot hold a second one.
    to: { name: '', address: to },
    subject,
    text,
    messageId: `<${id}@${host}>`,
    // So that no automatic answer comes back.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

/** Its message names the server's code, and neither an address nor a text. */
function failureOf(error: unknown): MailError {
  if (error instanceof MailError) return error
  const { code = 'unknown', responseCode = '', command, response = '' } = error as Partial<NodemailerError>
  const isRefusedAddress = command === 'RCPT TO' && addressRefusal.test(response)
  return new MailError(`the mail server refused: ${code} ${responseCode}`.trim(), { isRefusedAddress })
}

// Not 530 and 5.7.x, rules of the server for all mails, not 5.4.5, a quota, and not 5.1.7 and 5.1.8, the sender: many servers say
// these only here. A 550 without such a number is taken for the address.
const addressRefusal = /^5(?!30)\d\d[ -](?!5\.7\.|5\.4\.5\b|5\.1\.[78]\b)/

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
}
