/** A self-signed certificate for localhost, made by the machine's own openssl. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Requirement } from '../runner/requirements.ts'

export interface Certificate {
  /** What a client must trust, as PEM text. */
  ca: string
  /** The file with the server's key and certificate, as PEM. */
  keyStore: string
}

export const openssl: Requirement = {
  isMet: spawnSync('openssl', ['version']).status === 0,
  reason: 'openssl, which makes the certificate, is not installed',
}

/** Needs `openssl`. */
export async function makeCertificate(directory: string): Promise<Certificate> {
  const key = join(directory, 'key.pem')
  const certificate = join(directory, 'certificate.pem')
  const keyStore = join(directory, 'key-store.pem')
  await promisify(execFile)('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key, '-out', certificate],
  ])
  const ca = readFileSync(certificate, 'utf8')
  writeFileSync(keyStore, readFileSync(key, 'utf8') + ca, { mode: 0o600 })
  return { ca, keyStore }
}
