import { chmodSync, readFileSync } from 'node:fs'
import { databasesOf, required, serverSettings } from '../distributed.ts'
import { withModel } from '../local/access.ts'
import { type DataDirectory, openExistingDataDirectory, readSecrets } from '../local/data-directory.ts'
import {
  type Announcement,
  type AnnouncementReport,
  announce,
  checkSubject,
  checkText,
  namePattern,
} from '../portal/notices/announcement.ts'
import { type Contacts, contactsOfFile, contactsOfKeys, versionOf } from '../portal/notices/contacts.ts'
import { createOutboxMailer } from '../portal/notices/outbox-mailer.ts'
import type { Mailer } from '../portal/ports.ts'
import { smtpMailer } from '../portal/service.ts'
import type { PortalStore } from '../portal/store/port.ts'
import { portalStore } from '../portal/store/redis-store.ts'
import { openSqliteStore } from '../portal/store/sqlite-store.ts'
import { closing } from '../runtime/closing.ts'
import { type Config, ConfigError, readConfig } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { openTables } from '../tables/clickhouse.ts'
import type { Databases, Tables } from '../tables/port.ts'
import {
  type Command,
  dataDirOption,
  embeddedDirectory,
  type Io,
  printJson,
  readArguments,
  UsageError,
} from './command.ts'
import { jsonOption } from './help.ts'
import { interruptible } from './interruptible.ts'
import { printable } from './printable.ts'

/** What the announcement needs of the form that the command works on. */
interface Place {
  tables: Tables
  databases: Databases
  store: PortalStore
  mailer: Mailer
  portalKey: string
}

interface Asked {
  announcement: Omit<Announcement, 'addresses'>
  /** The contacts of the file; undefined: those of active keys. */
  contacts: Contacts | undefined
  version: ReturnType<typeof versionOf>
}

export const notifyCommand: Command = {
  help: {
    call:
      'notify --id NAME --subject S --text FILE [--contacts FILE | --api-version V] [--dry-run] [--retry-doubtful] ' +
      '[--data-dir D] [--json]',
    does:
      'Sends one mail to each contact address of active API keys, for example before a breaking change. Each address gets it once: ' +
      'run the same command again after a kill or a failure, and it goes on. An address that was being sent to when a run was killed is ' +
      'in doubt: it is printed, and gets the mail only with --retry-doubtful. Exit code: 0 every address has the mail or refuses ' +
      'mail; 1 some are left or in doubt; 2 called wrongly.',
    options: {
      '--id NAME':
        'the name of this announcement, 1 to 64 letters, digits and hyphens; it stands for one subject and text',
      '--subject S': 'the subject of the mail, up to 150 characters',
      '--text FILE': 'a file with the text of the mail, UTF-8, up to 32 KB',
      '--contacts FILE': 'send to the addresses in this file, one a line, and not to the contacts of keys',
      '--api-version V':
        'only contacts of keys that called this version, for example v1, in the last 90 days',
      '--dry-run': 'print how many addresses would get the mail, and send nothing',
      '--retry-doubtful':
        'send also to addresses in doubt; they may get the mail twice. Make sure that no other run is alive',
      ...dataDirOption,
      ...jsonOption,
    },
    examples: [
      'notify --id v1-ends --subject "Version 1 of the API ends" --text v1-ends.txt --dry-run',
      'notify --id v1-ends --subject "Version 1 of the API ends" --text v1-ends.txt',
    ],
    cost: 'One mail after the other, so the mail server sets the pace. It needs PLEDGEVIEW_SMTP_URL; embedded without it, the mails are files in the folder outbox. Distributed, it needs ClickHouse and Redis, too.',
  },

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: {
        id: { type: 'string' },
        subject: { type: 'string' },
        text: { type: 'string' },
        contacts: { type: 'string' },
        'api-version': { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        'retry-doubtful': { type: 'boolean', default: false },
        'data-dir': { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const asked = askedOf(values)
    const config = readConfig(process.env)
    const root = embeddedDirectory(values['data-dir'], config)
    const report = await interruptible(signal =>
      root === undefined
        ? notifyDistributed(config, asked, signal)
        : notifyEmbedded(openExistingDataDirectory(root), config, asked, signal),
    )
    print(io, asked, report, values.json)
    return report.left + report.doubtful.length === 0 || asked.announcement.isDry ? 0 : 1
  },
}

type Values = Partial<Record<'id' | 'subject' | 'text' | 'contacts' | 'api-version', string>> & {
  'dry-run': boolean
  'retry-doubtful': boolean
}

function askedOf(values: Values): Asked {
  const name = values.id ?? ''
  if (!namePattern.test(name)) throw new UsageError('--id takes 1 to 64 letters, digits and hyphens')
  const subject = checkSubject(values.subject ?? '')
  if ('reason' in subject) throw new UsageError(`--subject ${subject.reason}`)
  if (values.text === undefined) throw new UsageError('--text is missing')
  const text = checkText(readFileOf('text', values.text))
  if ('reason' in text) throw new UsageError(`--text ${values.text} ${text.reason}`)
  if (values.contacts !== undefined && values['api-version'] !== undefined) {
    throw new UsageError('take --contacts or --api-version, not both')
  }
  const version = values['api-version'] === undefined ? undefined : versionOf(values['api-version'])
  if (values['api-version'] !== undefined && !version) {
    throw new UsageError(`there is no version ${JSON.stringify(values['api-version'])} of the API`)
  }
  return {
    announcement: {
      name,
      subject: subject.subject,
      text: text.text,
      isDry: values['dry-run'],
      retriesDoubtful: values['retry-doubtful'],
    },
    contacts: values.contacts === undefined ? undefined : contactsIn(values.contacts),
    version,
  }
}

function contactsIn(path: string): Contacts {
  const text = new TextDecoder().decode(readFileOf('contacts', path))
  try {
    return contactsOfFile(text, path)
  } catch (error) {
    throw new UsageError(messageOf(error))
  }
}

function readFileOf(option: string, path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UsageError(`--${option} ${path} cannot be read: ${messageOf(error)}`)
  }
}

type Report = AnnouncementReport & { addresses: number; invalid: number; outbox?: string }

/** Sends with the claims of the store, so beside any portal and any other run of the command. */
async function run(
  { tables, databases, store, mailer, portalKey }: Place,
  { announcement, contacts, version }: Asked,
  signal: AbortSignal,
): Promise<Report> {
  const { addresses, invalid } = contacts ?? (await contactsOfKeys({ tables, databases }, version))
  const report = await announce(
    { store, mailer, portalKey, now: Date.now, signal },
    { ...announcement, addresses },
  )
  return { ...report, addresses: addresses.length, invalid }
}

async function notifyEmbedded(
  directory: DataDirectory,
  config: Config,
  asked: Asked,
  signal: AbortSignal,
): Promise<Report> {
  const smtp = smtpMailer(config)
  const outbox = {
    folder: directory.outbox,
    from: config.PLEDGEVIEW_MAIL_FROM,
    show: () => undefined,
    now: Date.now,
  }
  return closing(async open => {
    const mailer = open(smtp ?? createOutboxMailer(outbox))
    const store = open(openSqliteStore({ path: directory.portal, now: Date.now }))
    chmodSync(directory.portal, 0o600)
    const portalKey = readSecrets(directory, config).portalKey
    const report = await withModel(directory, config, { isCaughtUp: true }, ({ tables, databases }) =>
      run({ tables, databases, store, mailer, portalKey }, asked, signal),
    )
    return { ...report, ...(!smtp && { outbox: directory.outbox }) }
  })
}

async function notifyDistributed(config: Config, asked: Asked, signal: AbortSignal): Promise<Report> {
  const settings = required(config, [
    'PLEDGEVIEW_PORTAL_KEY',
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_REDIS_URL',
  ])
  const mailer = smtpMailer(config)
  if (!mailer) throw new ConfigError('wrong settings:\n  PLEDGEVIEW_SMTP_URL: has to be set')
  const logger = createLogger('error')
  return closing(async open => {
    open(mailer)
    const tables = open(openTables(serverSettings(config)))
    const store = open(portalStore(config, settings.PLEDGEVIEW_REDIS_URL, logger))
    const place = { tables, databases: databasesOf(config), store, mailer }
    return run({ ...place, portalKey: settings.PLEDGEVIEW_PORTAL_KEY }, asked, signal)
  })
}

function print(io: Io, { announcement: { name, isDry } }: Asked, report: Report, asJson: boolean): void {
  const { addresses, sent, alreadySent, refused, left, lastFailure, doubtful, invalid, outbox } = report
  if (asJson) {
    printJson(io, {
      ...{
        id: name,
        is_dry_run: isDry,
        addresses,
        sent,
        already_sent: alreadySent,
        refused,
        left,
        doubtful,
        invalid,
      },
      last_failure: lastFailure ?? null,
    })
    return
  }
  const lines = [
    `${addresses} addresses: ${isDry ? `${left} would get the mail` : `${sent} sent now, ${left} left`}, ${alreadySent} had it before, ` +
      `${refused} refused by the mail server, ${doubtful.length} in doubt`,
    ...(invalid > 0 ? [`${invalid} keys have a contact that is no e-mail address`] : []),
    ...(lastFailure === undefined ? [] : [`the last failure: ${printable(lastFailure)}`]),
    ...doubtful.map(address => `in doubt: ${printable(address)}`),
    ...(left > 0 && !isDry ? ['Run the same command again to go on.'] : []),
    ...(outbox !== undefined && !isDry ? [`There is no mail server: the mails are files in ${outbox}`] : []),
  ]
  io.stdout.write(`${lines.join('\n')}\n`)
}
