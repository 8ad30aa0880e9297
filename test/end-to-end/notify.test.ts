/** `pledgeview notify` on the embedded form, as it is called. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { type MailServer, startMailServer } from '../support/portal/mail-server.ts'

const directory = makeDataDirectory()
const text = join(directory.path, 'announcement.txt')
let service: ServiceProcess
let server: MailServer

describe('pledgeview notify', () => {
  beforeAll(async () => {
    server = await startMailServer()
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
    writeFileSync(text, 'Version 1 ends.\nPlease change.\n')
    const issuing = ['one', 'two', 'two', 'gone'].map(account => {
      const who = ['--account', account, '--name', account, '--url', 'https://example.com']
      return command('keys', 'issue', ...who, '--email', `${account}@example.com`, '--json')
    })
    const gone = (await Promise.all(issuing)).at(-1)
    await command('keys', 'revoke', JSON.parse(gone?.stdout ?? '').key)
  })

  afterAll(async () => {
    await service.stop()
    await server.close()
    directory.remove()
  })

  test('sends to each contact of an active key once, beside the service and without it', async () => {
    const dry = await notify('--dry-run', '--json')
    expect(JSON.parse(dry.stdout), dry.stderr).toEqual({
      ...{ id: 'v1-ends', is_dry_run: true, addresses: 2, sent: 0, already_sent: 0, refused: 0, left: 2 },
      ...{ doubtful: [], invalid: 0, last_failure: null },
    })
    expect(server.mails).toEqual([])
    const sent = await notify()
    expect(sent).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('2 addresses: 2 sent now, 0 left'),
    })
    expect(server.counts()).toEqual({ 'one@example.com': 1, 'two@example.com': 1 })
    expect(server.mails[0]?.email).toMatchObject({
      subject: 'Version 1 ends',
      text: 'Version 1 ends.\nPlease change.\n',
    })

    // No key has called the API yet.
    const called = await notify('--api-version', 'v1', '--json')
    expect(JSON.parse(called.stdout)).toMatchObject({ addresses: 0 })
    await service.stop()
    expect(JSON.parse((await notify('--json')).stdout)).toMatchObject({ sent: 0, already_sent: 2 })
    const contacts = join(directory.path, 'contacts.txt')
    writeFileSync(contacts, '# two of them\nONE@example.com\n\nthree@example.com\n')
    expect(JSON.parse((await notify('--contacts', contacts, '--json')).stdout)).toMatchObject({
      ...{ addresses: 2, sent: 1, already_sent: 1 },
    })
    expect(server.counts()['three@example.com']).toBe(1)
  })

  test('refuses what could not be sent as it is, and names it', async () => {
    const at = (name: string, content: string | Uint8Array) => {
      const path = join(directory.path, name)
      writeFileSync(path, content)
      return path
    }
    const [latin1, bell] = [at('latin1.txt', new Uint8Array([0xe9])), at('bell.txt', 'one\ntwo\u0007\n')]
    const lines = at('bad.txt', 'one@example.com\nx@example.com, y@example.com\n')
    const wrong: [string[], string][] = [
      [['--id', 'a b', '--subject', 's', '--text', text], '--id takes 1 to 64 letters'],
      [['--id', 'a', '--subject', 's\r\nBcc: eve@example.com', '--text', text], '--subject has line breaks'],
      [['--id', 'a', '--subject', 's', '--text', latin1], 'is not UTF-8'],
      [['--id', 'a', '--subject', 's', '--text', bell], 'has a control character in line 2'],
      [['--id', 'a', '--subject', 's', '--text', text, '--contacts', lines], 'bad.txt, line 2: the address'],
      [['--id', 'a', '--subject', 's', '--text', text, '--api-version', 'v9'], 'there is no version "v9"'],
    ]
    const results = await Promise.all(wrong.map(([args]) => command('notify', ...args)))
    for (const [index, [, reason]] of wrong.entries()) {
      expect(results[index]).toMatchObject({ code: 2, stderr: expect.stringContaining(reason) })
    }
    expect(server.mails).toHaveLength(3)
  })
})

function notify(...args: string[]) {
  return command('notify', '--id', 'v1-ends', '--subject', 'Version 1 ends', '--text', text, ...args)
}

function command(...args: string[]) {
  return runCli([...args, '--data-dir', directory.path], undefined, { PLEDGEVIEW_SMTP_URL: server.url })
}
