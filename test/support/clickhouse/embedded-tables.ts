/** The tables of a test's own data directory, opened as `npm start` opens them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { SqlDoor } from '../../../services/clickhouse-server/door.ts'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { type EmbeddedTables, openEmbeddedTables } from '../../../services/embedded/tables.ts'
import { readConfig } from '../../../services/runtime/config.ts'

export interface TestDirectory {
  path: string
  /** By default with SQL access for data teams on free ports. */
  open(options?: { sql?: SqlDoor | undefined; environment?: Record<string, string> }): Promise<EmbeddedTables>
  remove(): void
}

export const freeDoor: SqlDoor = { httpPort: 0, nativePort: 0 }

export function makeTestDirectory(): TestDirectory {
  const path = mkdtempSync(join(tmpdir(), 'pledgeview-embedded-'))
  return {
    path,
    open: ({ environment = {}, ...options } = {}) =>
      openEmbeddedTables({
        directory: openDataDirectory(path),
        config: readConfig(environment),
        sql: 'sql' in options ? options.sql : freeDoor,
        logger: pino({ level: 'silent' }),
      }),
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
