/**
 * Secrets from files. Each secret setting NAME may be given as NAME_FILE, the path of a file with the value, as Docker and
 * Kubernetes mount secrets. So the value is in no environment, which other programs may read and crash reports contain.
 *
 * A file is read once, when the program starts. A new secret needs a restart.
 */
import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { messageOf } from './message-of.ts'

/** Settings that are secrets, or addresses that may have a password. */
export const secretNames = [
  'PLEDGEVIEW_KEY_PEPPER',
  'PLEDGEVIEW_BACKER_KEY',
  'PLEDGEVIEW_PORTAL_KEY',
  'PLEDGEVIEW_SMTP_URL',
  'PLEDGEVIEW_OIDC_CLIENT_SECRET',
  'PLEDGEVIEW_KAFKA_SASL_PASSWORD',
  'PLEDGEVIEW_SQL_PASSWORD',
  'PLEDGEVIEW_CLICKHOUSE_PASSWORD',
  'PLEDGEVIEW_REDIS_URL',
  'PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD',
] as const

/** The setting that has the path of this secret's file. */
export const fileSettingOf = (name: string): string => `${name}_FILE`

/** The names of all settings that have the path of a secret's file. */
export const secretFileNames: readonly string[] = secretNames.map(fileSettingOf)

// A secret is one line. More is another file, or a device that never ends.
const fileBytesMax = 65_536

/**
 * Replaces each NAME_FILE by NAME with the content of the file. Never puts content into a fault. `origins`: the path that a secret came
 * from.
 */
export function resolveSecretFiles(given: Readonly<Record<string, string>>) {
  const settings: Record<string, string> = { ...given }
  const origins = new Map<string, string>()
  const faults: string[] = []
  for (const name of secretNames) {
    const fileSetting = fileSettingOf(name)
    const path = settings[fileSetting]
    delete settings[fileSetting]
    if (path === undefined) continue
    if (settings[name] !== undefined) {
      faults.push(`${fileSetting}: ${name} is set too; set only one of them`)
      continue
    }
    try {
      settings[name] = readSecret(path)
      origins.set(name, path)
    } catch (error) {
      faults.push(`${fileSetting}: ${path} ${messageOf(error)}`)
    }
  }
  return { settings, origins, faults }
}

/** The content without one newline at its end, which editors and `echo` write. Throws with what is wrong with the file. */
function readSecret(path: string): string {
  const bytes = Buffer.alloc(fileBytesMax + 1)
  let length = 0
  try {
    using opened = new DisposableStack()
    const file = opened.adopt(openSync(path, 'r'), closeSync)
    // Ends: each round but the last reads at least one byte.
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(file, bytes, length, bytes.length - length, null)
    }
  } catch (cause) {
    throw new Error(`cannot be read: ${messageOf(cause)}`, { cause })
  }
  if (length > fileBytesMax) throw new Error(`is longer than ${fileBytesMax} bytes`)
  const read = bytes.subarray(0, length)
  if (!isUtf8(read)) throw new Error('is not UTF-8 text')
  // It leaves out the mark of the byte order, which some editors write.
  const secret = new TextDecoder().decode(read).replace(/\r?\n$/, '')
  if (secret === '') throw new Error('is empty')
  return secret
}
