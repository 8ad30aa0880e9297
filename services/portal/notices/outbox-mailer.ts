/**
 * Mails of an embedded service without SMTP: each is shown on the terminal, and kept as a file in the folder `outbox` of the
 * data directory. Files are for this user only, and are deleted after a day.
 */
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Mail, Mailer } from '../ports.ts'

export interface OutboxMailerOptions {
  folder: string
  from: string
  /** Shows a mail to the person at the terminal. */
  show: (mail: Mail) => void
  /** Unix milliseconds. */
  now: () => number
}

const keepMsMax = 86_400_000
const sweepMs = 3_600_000
const filesMax = 1_000

/** Makes the folder if it is missing. */
export function createOutboxMailer({ folder, from, show, now }: OutboxMailerOptions): Mailer {
  makeFolder(folder)
  const sweeping = setInterval(sweep, sweepMs).unref()
  sweep()

  // Nothing waits for it, so its failure would end the process. The next one does the work.
  function sweep(): void {
    try {
      removeOld(folder, now())
    } catch {}
  }

  return {
    async send(mail) {
      // Somebody may have cleared it away.
      makeFolder(folder)
      sweep()
      const date = new Date(now()).toISOString()
      const name = `${date.replaceAll(':', '-')}-${mail.id.replaceAll(/[^\w-]/g, '_').slice(0, 80)}.txt`
      const text = `From: ${from}\nTo: ${mail.to}\nSubject: ${mail.subject}\nDate: ${date}\n\n${mail.text}`
      writeFileSync(join(folder, name), text, { mode: 0o600 })
      show(mail)
    },
    mailsAre:
      'This service has no mail server. It prints the mail in the terminal in which it runs, and keeps it in the folder outbox.',
    async close() {
      clearInterval(sweeping)
    },
  }
}

function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
}

/** Removes files that are older than a day, and the oldest beyond the most that are kept. */
function removeOld(folder: string, now: number): void {
  const names = readdirSync(folder)
    .filter(name => name.endsWith('.txt'))
    .sort()
  const surplus = Math.max(0, names.length - filesMax)
  for (const [index, name] of names.entries()) {
    const path = join(folder, name)
    const writtenAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now
    if (index < surplus || now - writtenAt > keepMsMax) rmSync(path, { force: true })
  }
}
