import { randomBytes } from 'node:crypto'
import { withModel } from '../embedded/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { issueKey, type KeyAdmin, type KeyRecord, keyDirectory, revokeKey } from '../shared/api-keys.ts'
import { type Config, readConfig } from '../shared/config.ts'
import { keyPrefix, keyPrefixLength } from '../shared/credentials.ts'
import {
  databasesOf,
  isDistributed,
  kafkaSettings,
  required,
  serverSettings,
  stateEncoderOf,
} from '../shared/distributed.ts'
import { openKafkaWriter } from '../shared/event-log/kafka/writer.ts'
import { createLogger } from '../shared/logger.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { holdTablesIdentity } from '../shared/tables/identity.ts'
import {
  type Command,
  defaultDataDirectory,
  type Io,
  printJson,
  readArguments,
  UsageError,
} from './command.ts'

const options = {
  'data-dir': { type: 'string' },
  json: { type: 'boolean', default: false },
  account: { type: 'string' },
  name: { type: 'string' },
  url: { type: 'string' },
  email: { type: 'string' },
  scope: { type: 'string', multiple: true },
} as const

type Values = ReturnType<typeof readArguments<{ args: string[]; options: typeof options }>>['values']

export const keysCommand: Command = {
  usage: `usage: pledgeview keys issue --account A --name N --url U --email E [--scope S ...] [--json]
       pledgeview keys list --account A [--json]
       pledgeview keys revoke KEY [--json]

An account has at most three active keys. The secret is printed once, by issue, and stored only as a hash: a lost
secret means revoking the key and issuing another. Distributed where PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is
not given. KEY is a whole key or its first ${keyPrefixLength} characters.

  --scope S      default read:public, without which the API answers 403
  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values, positionals } = readArguments({ args, allowPositionals: true, options })
    const [verb, ...rest] = positionals
    switch (verb) {
      case 'issue':
        requireNone(rest)
        return issue(values, io)
      case 'list':
        requireNone(rest)
        return list(values, io)
      case 'revoke':
        return revoke(rest, values, io)
      default:
        throw new UsageError('the keys commands are issue, list and revoke')
    }
  },
}

async function issue(values: Values, io: Io): Promise<number> {
  const wanted = {
    account: requireId('account', values.account),
    name: requireText('name', values.name),
    url: requireUrl(values.url),
    email: requireEmail(values.email),
    ...(values.scope && { scopes: values.scope }),
  }
  const issued = await withAdmin(values, admin => issueKey(admin, wanted))
  if (values.json) printJson(io, issued)
  else {
    io.stdout.write(`key     ${issued.key}\nsecret  ${issued.secret}\n`)
    io.stderr.write('The secret is not stored and not shown again.\n')
  }
  return 0
}

async function list(values: Values, io: Io): Promise<number> {
  const account = requireId('account', values.account)
  const keys = await withAdmin(values, admin => admin.directory.ofAccount(account))
  if (values.json) printJson(io, { account, keys: keys.map(shown) })
  else if (keys.length === 0) io.stdout.write(`account ${account} has no keys\n`)
  else
    for (const key of keys.map(shown))
      io.stdout.write(`${key.key_prefix}  ${key.status.padEnd(7)}  ${key.issued_at}  ${key.name}\n`)
  return 0
}

async function revoke([key, ...rest]: string[], values: Values, io: Io): Promise<number> {
  if (key === undefined || rest.length > 0) throw new UsageError('keys revoke takes one KEY')
  if (key.length < keyPrefixLength) throw new UsageError(`a KEY has at least ${keyPrefixLength} characters`)
  const revoked = await withAdmin(values, admin => revokeKey(admin, key))
  if (values.json) printJson(io, { revoked: shown(revoked) })
  else io.stdout.write(`revoked ${keyPrefix(revoked.key)} (${revoked.name})\n`)
  return 0
}

/** Runs the work on the embedded model, or distributed on Kafka and the ClickHouse server. */
async function withAdmin<T>(values: Values, work: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  const root = values['data-dir']
  if (root === undefined && isDistributed(config)) return withDistributedAdmin(config, work)
  const directory = openExistingDataDirectory(root ?? defaultDataDirectory)
  return withModel(directory, config, { isCaughtUp: true }, ({ keys, writer, secrets }) =>
    work({ ...clocks, directory: keys, writer, pepper: secrets.keyPepper }),
  )
}

async function withDistributedAdmin<T>(config: Config, work: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  const { PLEDGEVIEW_KEY_PEPPER: pepper } = required(config, ['PLEDGEVIEW_KEY_PEPPER'])
  const tables = openServerTables(serverSettings(config))
  try {
    await holdTablesIdentity(tables, databasesOf(config), { PLEDGEVIEW_KEY_PEPPER: pepper })
    const encode = await stateEncoderOf(config)
    const writer = await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') })
    try {
      return await work({
        ...clocks,
        directory: keyDirectory(tables, databasesOf(config)),
        writer,
        encode,
        pepper,
      })
    } finally {
      await writer.close()
    }
  } finally {
    await tables.close()
  }
}

const clocks = { now: Date.now, monotonicMs: () => performance.now(), randomBytes }

/** What an operator sees of a key: no hash, and the key by its first characters. */
function shown(key: KeyRecord) {
  return {
    key_prefix: keyPrefix(key.key),
    status: key.status,
    account_id: key.account_id,
    name: key.name,
    url: key.url,
    contact_email: key.contact_email,
    scopes: key.scopes,
    issued_at: new Date(key.issued_at_ms).toISOString(),
  }
}

function requireNone(rest: string[]): void {
  if (rest.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(rest[0])}`)
}

function requireText(option: string, text: string | undefined): string {
  if (text === undefined || text.trim() === '') throw new UsageError(`--${option} is missing`)
  return text
}

function requireId(option: string, text: string | undefined): string {
  const id = requireText(option, text)
  if (id.includes('/') || id.length > 256)
    throw new UsageError(`--${option} has no slash and at most 256 characters`)
  return id
}

function requireUrl(text: string | undefined): string {
  const url = requireText('url', text)
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`--url is no web address: ${url}`)
  return url
}

function requireEmail(text: string | undefined): string {
  const email = requireText('email', text)
  if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new UsageError(`--email is no e-mail address: ${email}`)
  return email
}
