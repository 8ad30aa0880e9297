/**
 * The portal's store in a SQLite file, for the embedded form. Sessions outlive a restart.
 *
 * A write does not wait for the disk: after a loss of power the last sign-ins may be gone, and people sign in again.
 */
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Runtime } from '../../runtime/runtime.ts'
import type { PortalStore } from './port.ts'

const lockMsMax = 5_000
// How often what is over is deleted, and how much of it at most, so that no request waits for it.
const sweepMs = 60_000
const sweepEntriesMax = 10_000

const schema = readFileSync(new URL('schema.sql', import.meta.url), 'utf8')

/** Opens the file, and creates it if it is missing. */
export function openSqliteStore({ path, now }: { path: string } & Pick<Runtime, 'now'>): PortalStore {
  const database = new DatabaseSync(path, { timeout: lockMsMax })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;')
  database.exec(schema)
  const statements = {
    get: database.prepare('SELECT value FROM entries WHERE name = ? AND expires_at > ?'),
    put: database.prepare('INSERT OR REPLACE INTO entries (name, value, expires_at) VALUES (?, ?, ?)'),
    claim: database.prepare(
      `INSERT INTO entries (name, value, expires_at) VALUES (:name, :value, :end)
       ON CONFLICT (name) DO UPDATE SET value = :value, expires_at = :end WHERE expires_at <= :now RETURNING 1`,
    ),
    replace: database.prepare(
      'UPDATE entries SET value = ?, expires_at = ? WHERE name = ? AND expires_at > ? RETURNING 1',
    ),
    take: database.prepare('DELETE FROM entries WHERE name = ? RETURNING value, expires_at'),
    // A count that is over begins again, and so does one of before the clock was set back: it would end too late.
    count: database.prepare(
      `INSERT INTO entries (name, value, expires_at) VALUES (:name, '1', :end)
       ON CONFLICT (name) DO UPDATE SET
         value = iif(expires_at > :now AND expires_at <= :end, CAST(CAST(value AS INTEGER) + 1 AS TEXT), '1'),
         expires_at = iif(expires_at > :now, min(expires_at, :end), :end)
       RETURNING value`,
    ),
    sweep: database.prepare(
      'DELETE FROM entries WHERE name IN (SELECT name FROM entries WHERE expires_at <= ? LIMIT ?)',
    ),
  }
  const sweeping = setInterval(sweep, sweepMs).unref()

  // Nothing waits for it, so its failure would end the process. If the disk is full or locked, the next one does the work.
  function sweep(): void {
    try {
      statements.sweep.run(now(), sweepEntriesMax)
    } catch {}
  }

  return {
    async get(key) {
      return textOf(statements.get.get(key, now())?.value)
    },
    async put(key, value, ttlMs) {
      statements.put.run(key, value, now() + ttlMs)
    },
    async claim(key, value, ttlMs) {
      const parameters = { name: key, value, end: now() + ttlMs, now: now() }
      return statements.claim.get(parameters) !== undefined
    },
    async replace(key, value, ttlMs) {
      return statements.replace.get(value, now() + ttlMs, key, now()) !== undefined
    },
    async take(key) {
      const taken = statements.take.get(key)
      return taken !== undefined && Number(taken.expires_at) > now() ? textOf(taken.value) : undefined
    },
    async count(key, windowMs) {
      const counted = statements.count.get({ name: key, now: now(), end: now() + windowMs })
      return Number(counted?.value)
    },
    check: () => ({ ok: true, detail: 'in the data directory' }),
    async close() {
      clearInterval(sweeping)
      database.close()
    },
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
