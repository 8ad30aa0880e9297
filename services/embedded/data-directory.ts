/**
 * The data directory of an embedded service: what lies where, who holds it, and its secrets.
 *
 *     journal.sqlite   the event log; other processes may append to it
 *     tables/          ClickHouse's data, for one process at a time
 *     secrets.json     pepper and backer key, made once (mode 0600)
 *     identity.json    fingerprints of the secrets and the currency that it began with
 *     service.json     how to reach the process that runs on it (mode 0600), while one does
 *     demo.json        the demo platform that was loaded, where one was
 *     lock.sqlite      held by the process that runs on it; the kernel lets go of it when the process dies
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { fingerprintOf, type RandomBytes } from '../shared/credentials.ts'

export interface DataDirectory {
  root: string
  journal: string
  tables: string
}

/** Makes the directory where it is missing (mode 0700). Throws where the path is a file. */
export function openDataDirectory(root: string): DataDirectory {
  mkdirSync(root, { recursive: true, mode: 0o700 })
  return { root, journal: join(root, 'journal.sqlite'), tables: join(root, 'tables') }
}

/** The same, but only where a journal is there already: a mistyped path is no new platform. */
export function openExistingDataDirectory(root: string): DataDirectory {
  if (!existsSync(join(root, 'journal.sqlite'))) {
    throw new Error(`${root} is no data directory yet: npm start or events append makes one`)
  }
  return openDataDirectory(root)
}

const secretsSchema = z.object({
  key_pepper: z.string().min(32),
  backer_key: z.string().regex(/^[0-9a-f]{64}$/),
})

export interface Secrets {
  keyPepper: string
  /** 64 hex digits. */
  backerKey: string
}

/**
 * The secrets: those of the configuration, else those of the directory, which are made on first use.
 * Throws on a secrets file that cannot be read as one, rather than replacing what may be needed.
 */
export function readSecrets(
  directory: DataDirectory,
  configured: { keyPepper: string | undefined; backerKey: string | undefined },
  randomBytes: RandomBytes,
): Secrets {
  const path = join(directory.root, 'secrets.json')
  if (!existsSync(path)) {
    const made = { key_pepper: hex(randomBytes(32)), backer_key: hex(randomBytes(32)) }
    writePrivately(path, made)
  }
  const kept = secretsSchema.safeParse(readJson(path))
  if (!kept.success) throw new Error(`${path} is not a secrets file: ${kept.error.issues[0]?.message}`)
  return {
    keyPepper: configured.keyPepper ?? kept.data.key_pepper,
    backerKey: configured.backerKey ?? kept.data.backer_key,
  }
}

const identitySchema = z.object({
  key_pepper: z.string(),
  backer_key: z.string(),
  platform_currency: z.string(),
})

/**
 * Holds the directory to the secrets and the currency that it began with: under another backer key every backer would
 * count twice, under another pepper no secret would be right, and sums in two currencies mean nothing. What is kept are
 * fingerprints. Throws, naming the setting that differs.
 */
export function holdIdentity(directory: DataDirectory, secrets: Secrets, platformCurrency: string): void {
  const path = join(directory.root, 'identity.json')
  const identity = {
    key_pepper: fingerprintOf(secrets.keyPepper),
    backer_key: fingerprintOf(secrets.backerKey),
    platform_currency: platformCurrency,
  }
  if (!existsSync(path)) {
    writePrivately(path, identity)
    return
  }
  const kept = identitySchema.safeParse(readJson(path))
  if (!kept.success) throw new Error(`${path} cannot be read as one`)
  const settings = {
    key_pepper: 'PLEDGEVIEW_KEY_PEPPER',
    backer_key: 'PLEDGEVIEW_BACKER_KEY',
    platform_currency: 'PLEDGEVIEW_PLATFORM_CURRENCY',
  } as const
  for (const name of ['key_pepper', 'backer_key', 'platform_currency'] as const) {
    if (kept.data[name] === identity[name]) continue
    throw new Error(`${settings[name]} is not what ${directory.root} began with; set it as it was then`)
  }
}

const serviceSchema = z.object({ pid: z.int(), port: z.int(), ops_url: z.string(), ops_token: z.string() })

/** How to reach the process that runs on a directory. */
export type ServiceAddress = z.output<typeof serviceSchema>

export function writeServiceAddress(directory: DataDirectory, address: ServiceAddress): void {
  writePrivately(join(directory.root, 'service.json'), address)
}

/** The address that the last process left; `undefined` where there is none. It may be dead. */
export function readServiceAddress(directory: DataDirectory): ServiceAddress | undefined {
  const path = join(directory.root, 'service.json')
  if (!existsSync(path)) return undefined
  const address = serviceSchema.safeParse(readJson(path))
  return address.success ? address.data : undefined
}

export function removeServiceAddress(directory: DataDirectory): void {
  rmSync(join(directory.root, 'service.json'), { force: true })
}

const demoSchema = z.object({ seed: z.int(), now_ms: z.int(), is_loaded: z.boolean() })

/**
 * The demo platform of a directory: its seed, the time that its history ends at, and whether that history is in the
 * journal whole. Loading it again after a kill repeats the same events, which changes nothing.
 */
export type Demo = z.output<typeof demoSchema>

export function readDemo(directory: DataDirectory): Demo | undefined {
  const path = join(directory.root, 'demo.json')
  if (!existsSync(path)) return undefined
  const demo = demoSchema.safeParse(readJson(path))
  return demo.success ? demo.data : undefined
}

export function writeDemo(directory: DataDirectory, demo: Demo): void {
  writePrivately(join(directory.root, 'demo.json'), demo)
}

// Written beside and renamed, so that nobody reads half a file.
function writePrivately(path: string, content: object): void {
  const partial = `${path}.partial`
  writeFileSync(partial, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  chmodSync(partial, 0o600)
  renameSync(partial, path)
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
