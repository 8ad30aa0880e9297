/**
 * Starts a Postgres for one test, on a free loopback port and in its own directory, with Debian's programs. It refuses to run as
 * root, so it runs as the user that Debian's package makes. The platform's user has the rights that the guide asks for, and no more.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chownSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../../../services/runtime/free-port.ts'
import { endProgram, killAtExit, outputOf, type RunOptions, untilAnswers } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

const programs = globSync('/usr/lib/postgresql/*/bin/postgres').map(dirname).toSorted().at(-1)
const owner = ownerOf('postgres')

export const postgresProgram: Requirement = {
  isMet: programs !== undefined && (owner !== undefined || process.getuid?.() !== 0),
  reason: 'Postgres is not installed (Debian: postgresql)',
}

export type Postgres = Awaited<ReturnType<typeof startPostgres>>

export async function startPostgres() {
  // Not in TMPDIR, which may be where only root gets.
  const directory = mkdtempSync('/tmp/postgres-')
  if (owner) chownSync(directory, owner.uid, owner.gid)
  const port = await freePort()
  const [user, admin] = ['platform', 'postgres']
  const data = join(directory, 'data')
  await runProgram('initdb', ['-D', data, '-U', admin, '--auth=trust', '--no-sync', '--no-instructions'])
  const settings = {
    wal_level: 'logical',
    fsync: 'off',
    work_mem: '512MB',
    port: `${port}`,
    listen_addresses: '127.0.0.1',
  }
  const child = spawn(
    join(programs ?? '', 'postgres'),
    [
      ...['-D', data, '-k', directory],
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    { stdio: 'ignore', cwd: directory, ...owner },
  )
  // Killed, it would leave its own processes behind.
  killAtExit(child, 'SIGQUIT')
  const environment = {
    PGHOST: '127.0.0.1',
    PGPORT: `${port}`,
    PGUSER: user,
    PGPASSWORD: 'not asked for',
    PGDATABASE: 'postgres',
  }
  const psql = (args: readonly string[], stdin = '') =>
    runProgram('psql', ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', ...args], { environment, stdin })
  const runAsAdmin = (statements: string) => psql(['-U', admin, '-f', '-'], statements)
  await untilAnswers(child, 'Postgres', () => runAsAdmin('SELECT 1'))
  await runAsAdmin(`
    CREATE ROLE ${user} LOGIN REPLICATION;
    GRANT CREATE ON DATABASE postgres TO ${user};
    GRANT CREATE ON SCHEMA public TO ${user};`)
  return {
    /** As Postgres's own programs, and the connector, read them. */
    environment,
    /** Runs statements by `psql`, stops at the first that fails, and rejects with what it says. Gives the rows, without a heading. */
    run: (statements: string) => psql(['-f', '-'], statements),
    /** The same with a file. */
    runFile: (path: string) => psql(['-f', path]),
    runAsAdmin,
    async stop(): Promise<void> {
      await endProgram(child, 'SIGINT')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function runProgram(name: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  // The user may not read the directory of the tests.
  const place = { cwd: '/', ...(name === 'psql' ? {} : owner), msMax: Infinity }
  return (await outputOf(join(programs ?? '', name), args, { ...place, ...options })).trimEnd()
}

/** Whose server it is: only root has to become somebody else. */
function ownerOf(user: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string) => spawnSync('id', [flag, user]).stdout?.toString().trim()
  const [uid, gid] = [idOf('-u'), idOf('-g')]
  return uid && gid ? { uid: Number(uid), gid: Number(gid) } : undefined
}
