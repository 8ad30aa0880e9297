/** The tables of a test's own data directory, opened as `npm start` opens them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { SqlDoor } from '../../../services/clickhouse-server/door.ts'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { openEmbeddedTables } from '../../../services/embedded/tables.ts'
import { readConfig } from '../../../services/runtime/config.ts'

export type TestDirectory = ReturnType<typeof makeTestDirectory>

interface OpenOptions {
  sql?: SqlDoor | undefined
  environment?: Record<string, string>
}

export const freeDoor: SqlDoor = { httpPort: 0, nativePort: 0 }

export function makeTestDirectory() {
  const path = mkdtempSync(join(tmpdir(), 'pledgeview-embedded-'))
  return {
    path,
    /** By default with SQL access for data teams on free ports. */
    open: ({ environment = {}, ...options }: OpenOptions = {}) =>
      openEmbeddedTables({
        directory: openDataDirectory(path),
        config: readConfig(environment),
        sql: 'sql' in options ? options.sql : freeDoor,
        logger: pino({ level: 'silent' }),
      }),
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
