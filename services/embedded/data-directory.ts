/**
 * The data directory of an embedded service: its files, its identity and its secrets.
 *
 *     journal.sqlite   the event log; other processes may append to it
 *     tables/          ClickHouse's data, for one process at a time
 *     clickhouse/      ClickHouse's configuration, users and log (mode 0700)
 *     secrets.json     pepper, backer key and portal key, created once (mode 0600)
 *     portal.sqlite    the portal's sessions and sign-ins under way (mode 0600); without it people sign in again
 *     service.json     the address of the process that runs on the directory (mode 0600), while it runs
 *     demo.json        the demo platform that was loaded, if any
 *     lock.sqlite      locked by the process that runs on the directory; the kernel unlocks it when the process dies
 */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { hasBeenRead, syncDirectoryOf } from '../log/local/file.ts'
import type { Config } from '../runtime/config.ts'

export type DataDirectory = ReturnType<typeof openDataDirectory>

/**
 * Creates the directory if it is missing. It, its folders and its files are for this user only, even if they were
 * created with wider modes: they contain contact addresses and creators' ids. Throws if the path is a file.
 */
export function openDataDirectory(root: string) {
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const directory = {
    root,
    journal: join(root, 'journal.sqlite'),
    tables: join(root, 'tables'),
    clickHouse: join(root, 'clickhouse'),
    portal: join(root, 'portal.sqlite'),
  }
  closeToOthers(root, 0o700)
  for (const folder of [directory.tables, directory.clickHouse]) closeToOthers(folder, 0o700)
  for (const database of [directory.journal, directory.portal]) {
    for (const file of ['', '-wal', '-shm']) closeToOthers(`${database}${file}`, 0o600)
  }
  return directory
}

// A mounted volume may belong to another user, who decides about its mode. Its folders and files are still ours.
function closeToOthers(path: string, mode: number): void {
  const { mode: present, uid } = statSync(path, { throwIfNoEntry: false }) ?? { mode, uid: -1 }
  if ((present & 0o077) !== 0 && uid === process.getuid?.()) chmodSync(path, mode)
}

/** Opens a directory that already has a journal. A mistyped path must not create a new platform. A directory of another user is not reported as missing. */
export function openExistingDataDirectory(root: string): DataDirectory {
  if (!statSync(join(root, 'journal.sqlite'), { throwIfNoEntry: false })) {
    throw new Error(`${root} is no data directory yet: npm start or events append creates one`)
  }
  return openDataDirectory(root)
}

/**
 * Throws if root is about to make files in the directory of another user, who could not start on it any more. Some volumes give every
 * file to one user, whoever makes it: there root does no harm.
 */
export function mustBeOwner({ root, journal }: DataDirectory): void {
  const owner = statSync(journal, { throwIfNoEntry: false })?.uid
  if (process.getuid?.() !== 0 || owner === undefined || owner === 0) return
  const probe = mkdtempSync(join(root, 'owner-'))
  const { uid } = statSync(probe)
  rmSync(probe, { recursive: true })
  if (uid !== owner)
    throw new Error(
      `the data directory ${root} belongs to the user with the id ${owner}: run this as that user, and not as root. If that user cannot ` +
        `start on it any more, root has left files there: chown -R ${owner} ${root}`,
    )
}

const hexKey = z.string().regex(/^[0-9a-f]{64}$/)
const secretsSchema = z.object({ key_pepper: z.string().min(32), backer_key: hexKey, portal_key: hexKey })

export type Secrets = ReturnType<typeof readSecrets>

/**
 * The configured secrets. Those that are not configured come from the directory, which creates them on first use. Throws if the secrets
 * file cannot be read, or if it is missing although the tables or the journal were used with one. New secrets would not match: every backer
 * would count twice, no API key would be accepted, and no account would be found.
 */
export function readSecrets(
  directory: DataDirectory,
  config: Pick<Config, 'PLEDGEVIEW_KEY_PEPPER' | 'PLEDGEVIEW_BACKER_KEY' | 'PLEDGEVIEW_PORTAL_KEY'>,
) {
  const path = join(directory.root, 'secrets.json')
  const keyPepper = config.PLEDGEVIEW_KEY_PEPPER
  const backerKey = config.PLEDGEVIEW_BACKER_KEY
  const portalKey = config.PLEDGEVIEW_PORTAL_KEY
  if (keyPepper !== undefined && backerKey !== undefined && portalKey !== undefined)
    return { keyPepper, backerKey, portalKey }
  const wayOn =
    'restore it from the backup, or set PLEDGEVIEW_KEY_PEPPER, PLEDGEVIEW_BACKER_KEY and PLEDGEVIEW_PORTAL_KEY to its values'
  if (!existsSync(path)) {
    const hasTables = existsSync(directory.tables) && readdirSync(directory.tables).length > 0
    const isUsed = hasTables || hasBeenRead(directory.journal)
    if (isUsed) throw new Error(`${path} is missing, and ${directory.root} was used with it; ${wayOn}`)
    const newKey = () => randomBytes(32).toString('hex')
    writePrivately(path, { key_pepper: newKey(), backer_key: newKey(), portal_key: newKey() })
  }
  const kept = secretsSchema.safeParse(readJson(path))
  if (!kept.success)
    throw new Error(`${path} is not a secrets file: ${kept.error.issues[0]?.message}; ${wayOn}`)
  return {
    keyPepper: keyPepper ?? kept.data.key_pepper,
    backerKey: backerKey ?? kept.data.backer_key,
    portalKey: portalKey ?? kept.data.portal_key,
  }
}

/** The address of the process that runs on a directory. */
export type ServiceAddress = z.output<typeof serviceSchema>
const serviceSchema = z.object({
  pid: z.int(),
  port: z.int(),
  ops_url: z.string(),
  // A user with all rights on the tables, for an operator who inspects what the views do not show.
  clickhouse: z.object({ url: z.string(), user: z.string(), password: z.string() }),
})

/** The address that the last process left. The process may be dead. */
export const serviceAddress = privateFile('service.json', serviceSchema)

/**
 * The demo platform of a directory: the time at which its history ends, and whether the journal has all of that history. Loading it again after a kill repeats the same events, which changes nothing.
 */
export type Demo = z.output<typeof demoSchema>
const demoSchema = z.object({ now_ms: z.int(), is_loaded: z.boolean() })
export const demoFile = privateFile('demo.json', demoSchema)

/** A file with JSON in a data directory. `read` returns `undefined` if the file is missing or does not fit the schema. */
function privateFile<Schema extends z.ZodType<object>>(name: string, schema: Schema) {
  const pathIn = ({ root }: DataDirectory) => join(root, name)
  return {
    read: (directory: DataDirectory) => schema.safeParse(readJson(pathIn(directory))).data,
    write: (directory: DataDirectory, content: z.output<Schema>) =>
      writePrivately(pathIn(directory), content),
    remove: (directory: DataDirectory) => rmSync(pathIn(directory), { force: true }),
  }
}

// Written to another file and renamed, so that no process reads half a file, nor finds one after a power loss.
function writePrivately(path: string, content: object): void {
  const partial = `${path}.partial`
  writeFileSync(partial, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flush: true })
  chmodSync(partial, 0o600)
  renameSync(partial, path)
  syncDirectoryOf(path)
}

/** `undefined` if there is no such file, or no JSON in it. */
function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}
