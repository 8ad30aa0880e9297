/**
 * Configuration: every setting of every service, read once from the environment, checked as a whole, and frozen.
 *
 * `deploy/pledgeview.env.example` lists each setting with its unit and default. A test keeps the two together.
 */
import { z } from 'zod'
import { currencyDigits } from '../../contracts/events/currencies.ts'
import { addressRangeFault } from './http/addresses.ts'
import { resolveSecretFiles, secretFileNames } from './secret-files.ts'

const wholeNumber = ({ min = 1, max = Number.MAX_SAFE_INTEGER } = {}) =>
  z.string().regex(/^\d+$/, 'is not a whole number').transform(Number).pipe(z.number().min(min).max(max))

const count = (fallback: number, bounds: { min?: number; max?: number } = {}) =>
  wholeNumber(bounds).default(fallback)

/** With less, memory that belongs to no query would count as held by analysts (clickhouse-server/analysts.ts). */
export const clickHouseBytesMin = 536_870_912

const share = (fallback: number) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is not a number')
    .transform(Number)
    .pipe(z.number().min(0).max(1))
    .default(fallback)

const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false'])
    .transform(text => text === 'true')
    .default(fallback)

const list = z
  .string()
  .transform(text => text.split(',').map(part => part.trim()))
  .pipe(z.array(z.string().min(1, 'has an empty part')).min(1))

/** Addresses and ranges, separated by commas; `false` for none. */
const proxies = z
  .string()
  .transform(text => (text === 'false' ? [] : text.split(',').map(part => part.trim())))
  .superRefine((ranges, context) => {
    for (const range of ranges) {
      const fault = range === 'true' ? trustsAll : addressRangeFault(range)
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
    }
  })
  .transform((ranges): readonly string[] => ranges)
  .default([])

const trustsAll =
  'true would believe any address that a client writes. Name the addresses or ranges of your proxies, for example ' +
  '127.0.0.1,10.0.0.0/8'

const webAddress = z.url({ protocol: /^https?$/, error: 'is not an http or https address' })

/** What is no address at all is a fault of its own. */
const addressThat = (holds: (address: URL) => boolean) => (text: string) =>
  !URL.canParse(text) || holds(new URL(text))

const hasNoPassword = addressThat(
  ({ username, password, searchParams }) => !username && !password && !searchParams.has('password'),
)
const isAtRoot = addressThat(({ pathname }) => pathname === '/')
const isOrigin = addressThat(({ href, origin }) => href === `${origin}/`)
/** Without a user, password, query or fragment. */
const isAddressOnly = addressThat(({ href, origin, pathname }) => href === `${origin}${pathname}`)

// A client of ClickHouse would read these as settings, and print the URL in its warnings.
const clickHouseAddress = webAddress.refine(
  isOrigin,
  'may have no user, password, path, query or fragment, only http(s)://host:port',
)

/** A name that is put into SQL text without quotes. */
const identifier = z.string().regex(/^[A-Za-z_]\w{0,62}$/, 'is not a plain identifier')

/** 256 bits as 64 hex digits. */
const key = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'is not 64 lower-case hex digits (make one with: openssl rand -hex 32)')
  .optional()

/** Fastify opens a second server for `localhost`, which would have no bounds on its connections. */
const host = z
  .string()
  .regex(/^[\w.:%-]+$/, 'is not an address: write it without quotes, brackets and spaces')
  .refine(name => name.toLowerCase() !== 'localhost', 'is two addresses: write 127.0.0.1 or ::1')

/** A relation between settings, reported for the first. It is checked if each of them is right, whatever is wrong with others. */
function relationOf(...names: [string, ...string[]]) {
  return {
    path: [names[0]],
    when: ({ issues }: z.core.ParsePayload) =>
      !issues.some(({ path: [name] = [] }) => names.includes(String(name))),
  }
}

/** Settings of which all or none have to be set. */
function together(...names: [string, string, ...string[]]) {
  return [
    (settings: Readonly<Record<string, unknown>>) =>
      new Set(names.map(name => settings[name] === undefined)).size === 1,
    { ...relationOf(...names), message: `has to be set together with ${names.slice(1).join(' and ')}` },
  ] as const
}

/** A setting that does nothing without another one. `otherwise`: what it does not do. */
function needs(name: string, other: string, otherwise: string) {
  return [
    (settings: Readonly<Record<string, unknown>>) =>
      settings[name] === undefined || settings[other] !== undefined,
    { ...relationOf(name, other), message: `needs ${other}, otherwise ${otherwise}` },
  ] as const
}

const settingsSchema = z
  .object({
    PLEDGEVIEW_HOST: host.default('127.0.0.1'),
    PLEDGEVIEW_OPS_HOST: host.default('127.0.0.1'),
    PLEDGEVIEW_OPS_HOSTS: list.default([]),
    PLEDGEVIEW_LOG_LEVEL: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info'),
    PLEDGEVIEW_PLATFORM_CURRENCY: z
      .string()
      .refine(code => currencyDigits(code) !== undefined, 'is not an ISO 4217 code')
      .default('USD'),
    PLEDGEVIEW_KEY_PEPPER: key,
    PLEDGEVIEW_BACKER_KEY: key,
    PLEDGEVIEW_FOLD_MS_MAX: count(2_500, { min: 100, max: 300_000 }),
    PLEDGEVIEW_BATCH_RECORDS_MAX: count(100_000, { max: 1_000_000 }),
    PLEDGEVIEW_BATCH_BYTES_MAX: count(33_554_432, { min: 1_048_576 }),
    PLEDGEVIEW_BATCH_MS_MAX: count(250, { max: 60_000 }),
    PLEDGEVIEW_RETRY_MS_MAX: count(60_000),
    // A piece that is refused six times has to be one campaign by then (refusalsMax in fold/line.ts).
    PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: count(20_000, { max: 100_000 }),
    PLEDGEVIEW_SUPERSEDED_MS_MAX: count(1_800_000, { min: 500 }),
    PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX: count(2_147_483_648, { min: 67_108_864 }),
    PLEDGEVIEW_FOLD_ALONE_MS_MAX: count(10_000, { min: 200, max: 600_000 }),
    PLEDGEVIEW_REJECT_SHARE_MAX: share(0.1),
    PLEDGEVIEW_REJECT_WINDOW_RECORDS: count(10_000),
    PLEDGEVIEW_REJECTS_MIN: count(100),
    PLEDGEVIEW_REJECT_RETENTION_MS: count(2_592_000_000),
    PLEDGEVIEW_LAG_RECORDS_MAX: count(100_000),
    PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: count(120),
    PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: count(120),
    PLEDGEVIEW_CACHE_MS: count(60_000, { max: 3_600_000 }),
    PLEDGEVIEW_STATS_CACHE_MS: count(300_000, { max: 3_600_000 }),
    PLEDGEVIEW_REMOVALS_DAYS: count(90, { min: 0, max: 3_650 }),
    PLEDGEVIEW_EXPORT_DIR: z.string().min(1).optional(),
    PLEDGEVIEW_CACHE_BYTES_MAX: count(268_435_456, { min: 1_048_576 }),
    PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX: count(1_000_000, { min: 0 }),
    PLEDGEVIEW_KEYS_READ_MS_MAX: count(15_000, { min: 1_000, max: 30_000 }),
    PLEDGEVIEW_QUERY_MS_MAX: count(10_000, { min: 100, max: 120_000 }),
    PLEDGEVIEW_CONNECTIONS_MAX: count(4_096),
    PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: count(512),
    PLEDGEVIEW_TRUST_PROXY: proxies,
    PLEDGEVIEW_PORT: count(8_080, { min: 0, max: 65_535 }),
    PLEDGEVIEW_OPS_PORT: count(9_090, { min: 0, max: 65_535 }),
    PLEDGEVIEW_PORTAL_PORT: count(8_081, { min: 0, max: 65_535 }),
    PLEDGEVIEW_PORTAL_URL: webAddress
      .refine(
        isOrigin,
        'has more than a host, and the portal is at the root of its host: https://portal.example',
      )
      .optional(),
    PLEDGEVIEW_API_URL: webAddress.optional(),
    PLEDGEVIEW_SQL_URL: webAddress
      .refine(hasNoPassword, 'has a password, and it is shown on a public page')
      .refine(isAtRoot, 'has a path, and clients of ClickHouse take none: https://sql.example/?user=NAME')
      .optional(),
    PLEDGEVIEW_PORTAL_KEY: key,
    PLEDGEVIEW_SMTP_URL: z
      .string()
      .regex(/^smtps?:\/\/\S+$/, 'is not an smtp:// or smtps:// address')
      .optional(),
    PLEDGEVIEW_MAIL_FROM: z
      .string()
      .regex(
        /(^|<)[^\s<>"@]+@[^\s<>"@]+>?$/,
        'is neither an address nor: Name <address>, without quotes around it',
      )
      .default('Pledgeview <no-reply@localhost>'),
    PLEDGEVIEW_OIDC_ISSUER: webAddress.optional(),
    PLEDGEVIEW_OIDC_CLIENT_ID: z.string().optional(),
    PLEDGEVIEW_OIDC_CLIENT_SECRET: z.string().optional(),
    PLEDGEVIEW_KAFKA_BROKERS: list
      .pipe(z.array(z.string().regex(/^\S+:\d{1,5}$/, 'contains an address that is not host:port')))
      .optional(),
    PLEDGEVIEW_KAFKA_CLIENT_ID: z.string().default('pledgeview'),
    PLEDGEVIEW_KAFKA_GROUP: z.string().default('pledgeview-projector'),
    PLEDGEVIEW_KAFKA_SESSION_MS: count(10_000, { min: 1_000, max: 1_800_000 }),
    PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX: count(120_000),
    PLEDGEVIEW_KAFKA_TOPIC_PREFIX: z
      .string()
      .regex(/^[\w.-]*$/, 'contains a character that a topic name cannot have')
      .default(''),
    PLEDGEVIEW_KAFKA_TLS: flag(false),
    PLEDGEVIEW_KAFKA_TLS_CA_FILE: z.string().optional(),
    PLEDGEVIEW_KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
    PLEDGEVIEW_KAFKA_SASL_USERNAME: z.string().optional(),
    PLEDGEVIEW_KAFKA_SASL_PASSWORD: z.string().optional(),
    PLEDGEVIEW_KAFKA_CREATE_TOPICS: flag(true),
    PLEDGEVIEW_KAFKA_PARTITIONS: count(6, { max: 10_000 }),
    PLEDGEVIEW_KAFKA_REPLICATION: count(1, { max: 15 }),
    PLEDGEVIEW_KAFKA_COMPACTION_LAG_MS: count(86_400_000),
    PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS: count(604_800_000),
    PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX: wholeNumber({ min: clickHouseBytesMin }).optional(),
    PLEDGEVIEW_SQL_PASSWORD: z.string().default(''),
    PLEDGEVIEW_CLICKHOUSE_URL: clickHouseAddress.optional(),
    PLEDGEVIEW_CLICKHOUSE_USER: z.string().default('default'),
    PLEDGEVIEW_CLICKHOUSE_PASSWORD: z.string().default(''),
    PLEDGEVIEW_CLICKHOUSE_CA_FILE: z.string().optional(),
    PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX: count(30_000),
    PLEDGEVIEW_CLICKHOUSE_IDLE_MS_MAX: count(2_000),
    PLEDGEVIEW_CLICKHOUSE_CONNECTIONS_MAX: count(16),
    PLEDGEVIEW_CLICKHOUSE_CLUSTER: z.string().optional(),
    PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: list.pipe(z.array(clickHouseAddress)).optional(),
    PLEDGEVIEW_REDIS_URL: z
      .string()
      .regex(/^rediss?:\/\/\S+$/, 'is not a redis:// or rediss:// address')
      .optional(),
    PLEDGEVIEW_REDIS_PREFIX: z.string().default('pledgeview:'),
    // It appears in messages.
    PLEDGEVIEW_SCHEMA_REGISTRY_URL: webAddress
      .refine(isAddressOnly, 'may have no user, password, query or fragment')
      .optional(),
    PLEDGEVIEW_SCHEMA_REGISTRY_USER: z.string().optional(),
    PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD: z.string().optional(),
    PLEDGEVIEW_SCHEMA_REGISTRY_CA_FILE: z.string().optional(),
    PLEDGEVIEW_DATABASE: identifier.default('pledgeview'),
    PLEDGEVIEW_VIEWS_DATABASE: identifier.default('crowdfunding'),
  })
  .refine(settings => settings.PLEDGEVIEW_BATCH_MS_MAX <= settings.PLEDGEVIEW_RETRY_MS_MAX, {
    ...relationOf('PLEDGEVIEW_BATCH_MS_MAX', 'PLEDGEVIEW_RETRY_MS_MAX'),
    message: 'is longer than PLEDGEVIEW_RETRY_MS_MAX',
  })
  .refine(settings => settings.PLEDGEVIEW_KAFKA_SESSION_MS < settings.PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX, {
    ...relationOf('PLEDGEVIEW_KAFKA_SESSION_MS', 'PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX'),
    message: 'is not shorter than PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX',
  })
  // The other services may know the provider, too. Only the portal needs its secret (portal/service.ts).
  .refine(...together('PLEDGEVIEW_OIDC_ISSUER', 'PLEDGEVIEW_OIDC_CLIENT_ID'))
  .refine(...needs('PLEDGEVIEW_OIDC_CLIENT_SECRET', 'PLEDGEVIEW_OIDC_ISSUER', 'nobody can sign in with it'))
  .refine(...together('PLEDGEVIEW_CLICKHOUSE_SHARD_URLS', 'PLEDGEVIEW_CLICKHOUSE_CLUSTER'))
  .refine(
    ...together(
      'PLEDGEVIEW_KAFKA_SASL_MECHANISM',
      'PLEDGEVIEW_KAFKA_SASL_USERNAME',
      'PLEDGEVIEW_KAFKA_SASL_PASSWORD',
    ),
  )
  .refine(settings => settings.PLEDGEVIEW_KAFKA_TLS || settings.PLEDGEVIEW_KAFKA_TLS_CA_FILE === undefined, {
    ...relationOf('PLEDGEVIEW_KAFKA_TLS_CA_FILE', 'PLEDGEVIEW_KAFKA_TLS'),
    message: 'needs PLEDGEVIEW_KAFKA_TLS=true, otherwise nothing is encrypted',
  })
  .refine(
    ...needs('PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD', 'PLEDGEVIEW_SCHEMA_REGISTRY_USER', 'it is not sent'),
  )
  .refine(
    ({ PLEDGEVIEW_DATABASE: base, PLEDGEVIEW_VIEWS_DATABASE: views }) => {
      // tables/generation-log.ts and tables/schema/cluster-views.ts have the names.
      const isPrivate = new RegExp(`^${base}(_(ledger|read)_\\d+)?(_all)?$`)
      return ![views, `${views}_parts`].some(name => isPrivate.test(name))
    },
    {
      ...relationOf('PLEDGEVIEW_VIEWS_DATABASE', 'PLEDGEVIEW_DATABASE'),
      message: 'is a database of private tables, which analysts could read then: choose another name',
    },
  )

export type Config = Readonly<z.output<typeof settingsSchema>>

// Addresses of services for the tests. The program ignores them.
const testPrefix = 'PLEDGEVIEW_TEST_'

/** The names of all settings, those of secrets' files included. */
export const settingNames: readonly string[] = [...Object.keys(settingsSchema.shape), ...secretFileNames]

/** One or more settings are wrong. The message has a line for each. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/**
 * Reads the settings, and the files of the secrets. An empty value counts as not set. Throws `ConfigError` with every
 * fault at once.
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const given: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith('PLEDGEVIEW_') && !name.startsWith(testPrefix) && value) given[name] = value
  }
  const { settings, origins, faults } = resolveSecretFiles(given)
  for (const name of Object.keys(given))
    if (!settingNames.includes(name)) faults.push(`${name}: there is no such setting`)
  const result = settingsSchema.safeParse(settings)
  if (!result.success) {
    for (const issue of result.error.issues) {
      const name = issue.path.join('.')
      const path = origins.get(name)
      faults.push(path === undefined ? `${name}: ${issue.message}` : `${name} from ${path}: ${issue.message}`)
    }
  }
  if (!result.success || faults.length > 0) throw new ConfigError(`wrong settings:\n  ${faults.join('\n  ')}`)
  return Object.freeze(result.data)
}
