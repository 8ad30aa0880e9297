import { readFileSync } from 'node:fs'
import { versions } from '../../contracts/api/versions.ts'
import {
  type Announcement,
  type AnnouncementReport,
  announce,
  checkSubject,
  checkText,
  namePattern,
} from '../portal/notices/announcement.ts'
import { openNotices } from '../portal/notices/notices.ts'
import { messageOf } from '../runtime/message-of.ts'
import {
  type Command,
  commonOptions,
  type Io,
  printJson,
  readArguments,
  UsageError,
  type Values,
} from './command.ts'
import { onModel } from './on-model.ts'

const options = {
  '--id NAME':
    'the name of this announcement, 1 to 64 letters, digits and hyphens; it stands for one subject and text',
  '--subject S': 'the subject of the mail, up to 150 characters',
  '--text FILE': 'a file with the text of the mail, UTF-8, up to 32 KB',
  '--api-version V': 'only contacts of keys that called this version, for example v1, in the last 90 days',
  '--dry-run': 'print how many addresses would get the mail, and queue nothing',
  ...commonOptions,
}

export const notifyCommand: Command = {
  help: {
    call: 'notify --id NAME --subject S --text FILE [--api-version V] [--dry-run] [--data-dir D] [--json]',
    does:
      'Announces something, for example a breaking change: it queues a mail for each contact address of active API keys, and the portals ' +
      'send it within a day. An address that was queued before gets no second mail of the same name, unless the mail was given ' +
      'up in the last 30 days: run the same command again after a kill, to see how many mails were sent, or to try those again. ' +
      'While services run, a key that was made seconds ago may be missing.',
    options,
    examples: [
      'notify --id v1-ends --subject "Version 1 of the API ends" --text v1-ends.txt --dry-run',
      'notify --id v1-ends --subject "Version 1 of the API ends" --text v1-ends.txt',
    ],
    cost: 'Two queries, and an event for each address. The mail server of the portals sets the pace, and their other mails come first.',
  },

  async run(args, io) {
    const { values } = readArguments(args, options)
    const announcement = { ...announcementOf(values), isDry: values['dry-run'] }
    const report = await onModel(
      values['data-dir'],
      async model => {
        const portalKey = await model.secret('PLEDGEVIEW_PORTAL_KEY')
        const { tables, databases } = model
        const notices = openNotices({ tables, databases, writer: await model.writer() })
        return announce({ tables, databases, notices, portalKey }, announcement, Date.now())
      },
      // The portals need the mail server.
      { isCaughtUp: true, settings: ['PLEDGEVIEW_PORTAL_KEY', 'PLEDGEVIEW_SMTP_URL'] },
    )
    if (values.json) printJson(io, { id: announcement.name, is_dry_run: announcement.isDry, ...report })
    else print(io, report, announcement.isDry)
    return 0
  },
}

function announcementOf(values: Values<typeof options>): Omit<Announcement, 'isDry'> {
  const name = values.id ?? ''
  if (!namePattern.test(name)) throw new UsageError('--id takes 1 to 64 letters, digits and hyphens')
  const subject = checkSubject(values.subject ?? '')
  if ('reason' in subject) throw new UsageError(`--subject ${subject.reason}`)
  if (values.text === undefined) throw new UsageError('--text is missing')
  const text = checkText(readText(values.text))
  if ('reason' in text) throw new UsageError(`--text ${values.text} ${text.reason}`)
  const asked = values['api-version']
  const version = versions.find(one => one.name === asked)
  if (asked !== undefined && !version)
    throw new UsageError(`there is no version ${JSON.stringify(asked)} of the API`)
  return { name, ...subject, ...text, version }
}

function readText(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UsageError(`--text ${path} cannot be read: ${messageOf(error)}`)
  }
}

function print(io: Io, report: AnnouncementReport, isDry: boolean): void {
  const { addresses, noted, waiting, sent, given_up, settled_before, invalid } = report
  io.stdout.write(
    `${addresses} addresses: ${noted} ${isDry ? 'would get the mail' : 'queued now'}, ${waiting} waiting, ${sent} sent, ${given_up} given up\n`,
  )
  if (settled_before > 0) io.stdout.write(`sent or given up more than 30 days ago: ${settled_before}\n`)
  if (invalid > 0) io.stdout.write(`contacts that are no e-mail address: ${invalid}\n`)
}
