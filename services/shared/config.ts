/**
 * Configuration: every setting of every service, read once from the environment, checked as a whole, frozen.
 *
 * `deploy/pledgeview.env.example` lists each setting with its unit and default; a test keeps the two together.
 */
import { z } from 'zod'
import { currencyDigits } from '../../contracts/events/currencies.ts'

const count = (fallback: number, { min = 1, max = Number.MAX_SAFE_INTEGER } = {}) =>
  z
    .string()
    .regex(/^\d+$/, 'is not a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max))
    .default(fallback)

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

/** 256 bits as 64 hex digits. */
const key = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'is not 64 lower-case hex digits (make one with: openssl rand -hex 32)')
  .optional()

const settingsSchema = z
  .object({
    PLEDGEVIEW_HOST: z.string().default('127.0.0.1'),
    PLEDGEVIEW_OPS_HOST: z.string().default('127.0.0.1'),
    PLEDGEVIEW_LOG_LEVEL: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info'),
    PLEDGEVIEW_PLATFORM_CURRENCY: z
      .string()
      .refine(code => currencyDigits(code) !== undefined, 'is not an ISO 4217 code')
      .default('USD'),
    PLEDGEVIEW_KEY_PEPPER: key,
    PLEDGEVIEW_BACKER_KEY: key,
    PLEDGEVIEW_COMMIT_HORIZON_MS: count(5_000, { min: 200, max: 600_000 }),
    PLEDGEVIEW_BATCH_RECORDS_MAX: count(50_000, { max: 1_000_000 }),
    PLEDGEVIEW_BATCH_BYTES_MAX: count(33_554_432, { min: 1_048_576 }),
    PLEDGEVIEW_BATCH_MS_MAX: count(250, { max: 60_000 }),
    PLEDGEVIEW_RETRY_MS_MAX: count(60_000),
    PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: count(20_000),
    PLEDGEVIEW_REJECT_SHARE_MAX: share(0.1),
    PLEDGEVIEW_REJECT_WINDOW_RECORDS: count(10_000),
    PLEDGEVIEW_REJECTS_MIN: count(100),
    PLEDGEVIEW_LAG_RECORDS_MAX: count(100_000),
    PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: count(120),
    PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: count(120),
    PLEDGEVIEW_CACHE_MS: count(60_000, { max: 3_600_000 }),
    PLEDGEVIEW_STATS_CACHE_MS: count(300_000, { max: 3_600_000 }),
    PLEDGEVIEW_CACHE_BYTES_MAX: count(268_435_456, { min: 1_048_576 }),
    PLEDGEVIEW_CONNECTIONS_MAX: count(4_096),
    PLEDGEVIEW_TRUST_PROXY: flag(false),
  })
  .refine(settings => settings.PLEDGEVIEW_BATCH_MS_MAX <= settings.PLEDGEVIEW_RETRY_MS_MAX, {
    path: ['PLEDGEVIEW_BATCH_MS_MAX'],
    message: 'is longer than PLEDGEVIEW_RETRY_MS_MAX',
  })

export type Config = Readonly<z.output<typeof settingsSchema>>

/** The names of all settings, for the check against the commented example. */
export const settingNames: readonly string[] = Object.keys(settingsSchema.shape)

/** One or more settings are wrong; the message has a line for each. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Reads the settings. An empty value counts as not set. Throws `ConfigError` with every fault at once. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const faults: string[] = []
  const given = Object.entries(environment).filter(([name, value]) => name.startsWith('PLEDGEVIEW_') && value)
  for (const [name] of given)
    if (!settingNames.includes(name)) faults.push(`${name}: there is no such setting`)
  const result = settingsSchema.safeParse(Object.fromEntries(given))
  if (!result.success) {
    for (const issue of result.error.issues) faults.push(`${issue.path.join('.')}: ${issue.message}`)
  }
  if (!result.success || faults.length > 0) throw new ConfigError(`wrong settings:\n  ${faults.join('\n  ')}`)
  return Object.freeze(result.data)
}
