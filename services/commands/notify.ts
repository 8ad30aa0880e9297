import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { withModel } from '../embedded/access.ts'
import { type DataDirectory, openExistingDataDirectory, readPortalKey } from '../embedded/data-directory.ts'
import { createOutboxMailer } from '../portal/mail/outbox-mailer.ts'
import {
  type Announcement,
  type AnnouncementReport,
  announce,
  namePattern,
} from '../portal/notices/announcement.ts'
import { createClaims } from '../portal/notices/claims.ts'
import { type Contacts, contactsOfFile, contactsOfKeys, versionOf } from '../portal/notices/contacts.ts'
import { type ContactOf, currentContact } from '../portal/notices/current-contact.ts'
import { checkSubject, checkText } from '../portal/notices/typed-mail.ts'
import type { Mailer } from '../portal/ports.ts'
import { smtpMailer } from '../portal/service.ts'
import { type Config, ConfigError, readConfig } from '../shared/config.ts'
import { databasesOf, kafkaSettings, required, serverSettings } from '../shared/distributed.ts'
import { openJournalStateTopic } from '../shared/event-log/journal/state-topic.ts'
import { openKafkaStateTopic } from '../shared/event-log/kafka/state-topic.ts'
import type { StateTopic } from '../shared/event-log/state-topic.ts'
import { messageOf } from '../shared/message-of.ts'
import { createLogger } from '../shared/ops/logger.ts'
import { sleep } from '../shared/sleep.ts'
import { openTables } from '../shared/tables/clickhouse.ts'
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
  topic: StateTopic<'notices'>
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
    cost: 'One mail after the other, so the mail server sets the pace. It needs PLEDGEVIEW_SMTP_URL; embedded without it, the mails are files in the folder outbox.',
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

async function run(
  { topic, mailer, portalKey }: Place,
  { announcement }: Asked,
  { addresses, invalid }: Contacts,
  signal: AbortSignal,
): Promise<Report> {
  const monotonicMs = () => performance.now()
  const claim = createClaims({ topic, sender: randomUUID(), now: Date.now, random: Math.random, sleep })
  const report = await announce(
    { topic, mailer, portalKey, claim, now: Date.now, monotonicMs, sleep, signal },
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
  const contacts =
    asked.contacts ??
    (await withModel(directory, config, { isCaughtUp: true }, ({ tables, databases }) =>
      withContacts(
        () => openJournalStateTopic(directory.journal, 'accounts', { logger: createLogger('error') }),
        contactOf => contactsOfKeys(tables, databases, contactOf, asked.version),
      ),
    ))
  const mailer = smtpMailer(config)
  const outbox = {
    folder: directory.outbox,
    from: config.PLEDGEVIEW_MAIL_FROM,
    show: () => undefined,
    now: Date.now,
  }
  const topic = await openJournalStateTopic(directory.journal, 'notices', { logger: createLogger('error') })
  const place = {
    topic,
    mailer: mailer ?? createOutboxMailer(outbox),
    portalKey: readPortalKey(directory, config.PLEDGEVIEW_PORTAL_KEY, randomBytes),
  }
  try {
    const report = await run(place, asked, contacts, signal)
    return { ...report, ...(!mailer && { outbox: directory.outbox }) }
  } finally {
    await place.mailer.close()
    await topic.close()
  }
}

async function notifyDistributed(config: Config, asked: Asked, signal: AbortSignal): Promise<Report> {
  const { PLEDGEVIEW_PORTAL_KEY: portalKey } = required(config, ['PLEDGEVIEW_PORTAL_KEY'])
  const mailer = smtpMailer(config)
  if (!mailer) throw new ConfigError('wrong settings:\n  PLEDGEVIEW_SMTP_URL: has to be set')
  const contacts = asked.contacts ?? (await contactsOfServer(config, asked))
  const logger = createLogger('error')
  const topic = await openKafkaStateTopic(kafkaSettings(config), 'notices', { logger })
  try {
    return await run({ topic, mailer, portalKey }, asked, contacts, signal)
  } finally {
    await mailer.close()
    await topic.close()
  }
}

async function contactsOfServer(config: Config, { version }: Asked): Promise<Contacts> {
  const tables = openTables(serverSettings(config))
  try {
    return await withContacts(
      () => openKafkaStateTopic(kafkaSettings(config), 'accounts', { logger: createLogger('error') }),
      contactOf => contactsOfKeys(tables, databasesOf(config), contactOf, version),
    )
  } finally {
    await tables.close()
  }
}

/** Runs the work with the addresses that the integrations have now. */
async function withContacts<T>(
  open: () => Promise<StateTopic<'accounts'>>,
  work: (contactOf: ContactOf) => Promise<T>,
): Promise<T> {
  const topic = await open()
  try {
    return await work(currentContact(topic))
  } finally {
    await topic.close()
  }
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
