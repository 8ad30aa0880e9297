import { randomBytes } from 'node:crypto'
import { idFault } from '../../contracts/events/rules.ts'
import {
  issueKey,
  issueMsMax,
  type KeyAdmin,
  KeyError,
  type KeyRecord,
  keyDirectory,
  revokeKey,
  visibleMsMax,
} from '../api-keys/api-keys.ts'
import { keyPrefix, keyPrefixLength } from '../api-keys/credentials.ts'
import { checkKeyFields, type KeyFields } from '../portal/keys/key-fields.ts'
import { messageOf } from '../runtime/message-of.ts'
import { holdTablesIdentity } from '../tables/schema/identity.ts'
import {
  type Command,
  dataDirOption,
  type Io,
  interruptible,
  jsonOption,
  noSubcommand,
  printJson,
  readArguments,
  UsageError,
  type Values,
} from './command.ts'
import { onModel } from './on-model.ts'
import { printable } from './printable.ts'

const common = {
  '--data-dir D': `${dataDirOption['--data-dir D']}; without it, and if PLEDGEVIEW_KAFKA_BROKERS is set, the command works on Kafka and ClickHouse`,
  ...jsonOption,
}
const issueOptions = {
  '--account A': 'the account that gets the key',
  '--name N': 'the name of the integration that will use the key',
  '--url U': 'the web address of the integration',
  '--email E': 'the contact address of the integration',
  ...common,
}
const listOptions = { '--account A': 'the account', ...common }

export const keysCommand: Command = {
  help: {
    call: 'keys issue|list|revoke [OPTIONS]',
    does: 'Manages the API keys of an account.',
    subcommands: {
      issue: {
        call: 'keys issue --account A --name N --url U --email E [--data-dir D] [--json]',
        does:
          'Issues an API key and prints it with its secret. The secret is shown only here: only a hash of it is stored. If ' +
          'it is lost, revoke the key and issue another. An account has at most three active keys.',
        options: issueOptions,
        examples: [
          'keys issue --account acme --name Mirror --url https://acme.example --email ops@acme.example',
        ],
        cost: `It waits until the key is active: about 2 s, and at most ${issueMsMax / 1000} s once the log takes it. If the key does not become active, it is deleted again. An interrupt does not shorten that; a second one ends the command at once.`,
      },
      list: {
        call: 'keys list --account A [--data-dir D] [--json]',
        does: 'Lists the keys of an account, the oldest first. Secrets are not shown.',
        options: listOptions,
        examples: ['keys list --account acme'],
        cost: 'One query, and no Kafka. It appends nothing to the log. If no service runs on the data directory, it starts ClickHouse for the query, and shows what has been folded.',
      },
      revoke: {
        call: 'keys revoke KEY [--data-dir D] [--json]',
        does: 'Revokes a key, and waits until the ledger has it. The API refuses it within 2 s after that. This cannot be undone.',
        options: { KEY: `a whole key, or its first ${keyPrefixLength} characters`, ...common },
        examples: ['keys revoke pv_live_1a2b3c4d'],
        cost: `It waits until the revocation is in the tables, at most ${visibleMsMax / 1000} s.`,
      },
    },
  },

  async run([verb, ...args], io) {
    switch (verb) {
      case 'issue':
        return issue(readArguments(args, issueOptions).values, io)
      case 'list':
        return list(readArguments(args, listOptions).values, io)
      case 'revoke': {
        const { values, positionals } = readArguments(args, common, { allowPositionals: true })
        return revoke(positionals, values, io)
      }
      default:
        throw noSubcommand('keys', keysCommand.help, verb)
    }
  },
}

async function issue(values: Values<typeof issueOptions>, io: Io): Promise<number> {
  const account = requireId(values.account)
  const { name, url, contact_email: email } = requireFields(values)
  // If it ended before the secret is printed, the key could be active, and nobody could use it.
  const issuing = (admin: KeyAdmin) =>
    interruptible(async signal => {
      signal.addEventListener('abort', () => io.stderr.write(afterInterrupt))
      const issued = await issueKey(admin, { account, name, url, email })
      if (values.json) printJson(io, issued)
      else {
        io.stdout.write(`key     ${issued.key}\nsecret  ${issued.secret}\n`)
        io.stderr.write('The secret is not stored and not shown again.\n')
      }
    })
  await withAdmin(values, issuing).catch((error: Error) => {
    // Pages of the portal show the same error, and must not tell what is beneath it.
    if (error instanceof KeyError && error.cause) error.message += ` (${messageOf(error.cause)})`
    throw error
  })
  return 0
}

const afterInterrupt =
  'It ends once the key is active or deleted. After a second interrupt, revoke the key if keys list shows it.\n'

async function list(values: Values<typeof listOptions>, io: Io): Promise<number> {
  const account = requireId(values.account)
  const keys = await onModel(
    values['data-dir'],
    async ({ tables, databases, secret }) => {
      await secret('PLEDGEVIEW_KEY_PEPPER')
      return keyDirectory(tables, databases).ofAccount(account)
    },
    { settings: ['PLEDGEVIEW_KEY_PEPPER'] },
  )
  if (values.json) printJson(io, { account, keys: keys.map(shown) })
  else if (keys.length === 0) io.stdout.write(`account ${printable(account)} has no keys\n`)
  else
    for (const key of keys.map(shown))
      io.stdout.write(
        `${key.key_prefix}  ${key.status.padEnd(7)}  ${key.issued_at}  ${printable(key.name)}\n`,
      )
  return 0
}

async function revoke([key, ...rest]: string[], values: Values<typeof common>, io: Io): Promise<number> {
  if (key === undefined || rest.length > 0) throw new UsageError('keys revoke takes one KEY')
  if (key.length < keyPrefixLength) throw new UsageError(`a KEY has at least ${keyPrefixLength} characters`)
  const revoked = await withAdmin(values, admin => revokeKey(admin, key))
  if (values.json) printJson(io, { revoked: shown(revoked) })
  else io.stdout.write(`revoked ${keyPrefix(revoked.key)} (${printable(revoked.name)})\n`)
  return 0
}

function withAdmin<T>(values: Values<typeof common>, work: (admin: KeyAdmin) => Promise<T>): Promise<T> {
  return onModel(
    values['data-dir'],
    async ({ tables, databases, ...model }) => {
      const pepper = await model.secret('PLEDGEVIEW_KEY_PEPPER')
      await holdTablesIdentity(tables, databases, { PLEDGEVIEW_KEY_PEPPER: pepper })
      const encode = await model.encoder()
      const directory = keyDirectory(tables, databases)
      return work({ ...clocks, directory, writer: await model.writer(), encode, pepper })
    },
    { isCaughtUp: true, settings: ['PLEDGEVIEW_KEY_PEPPER'] },
  )
}

const clocks = { now: Date.now, monotonicMs: () => performance.now(), randomBytes }

/** What an operator sees of a key: no hash, and only the first characters of the key. */
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

function requireId(id = ''): string {
  if (id.trim() === '') throw new UsageError('--account is missing')
  const fault = idFault('--account', id)
  if (fault) throw new UsageError(`${fault.field} ${fault.reason}`)
  return id
}

/** By the rules of the portal. */
function requireFields({ name = '', url = '', email = '' }: Values<typeof issueOptions>): KeyFields {
  const { fields, faults } = checkKeyFields({ name, url, contact_email: email })
  if (!faults) return fields
  const reasons = Object.entries(faults).map(
    ([field, fault]) => `--${field === 'contact_email' ? 'email' : field} ${fault}`,
  )
  throw new UsageError(reasons.join(', '))
}
