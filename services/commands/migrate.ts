import { openDataDirectory } from '../embedded/data-directory.ts'
import { lockDataDirectory } from '../shared/event-log/journal-lock.ts'
import { openChdbTables } from '../shared/tables/chdb.ts'
import { migrate } from '../shared/tables/migrate.ts'
import { defaultDatabases } from '../shared/tables/port.ts'
import { type Command, defaultDataDirectory, printJson, readArguments } from './command.ts'

export const migrateCommand: Command = {
  usage: `usage: pledgeview migrate [--data-dir D] [--json]

Runs the table definitions that have not run yet. npm start does so by itself.

  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: {
        'data-dir': { type: 'string', default: defaultDataDirectory },
        json: { type: 'boolean', default: false },
      },
    })
    const directory = openDataDirectory(values['data-dir'])
    const lock = lockDataDirectory(directory.root)
    const tables = openChdbTables(directory.tables)
    try {
      const applied = await migrate(tables, defaultDatabases)
      if (values.json) printJson(io, { applied })
      else
        io.stdout.write(
          applied.length > 0 ? `applied ${applied.join(', ')}\n` : 'the tables are up to date\n',
        )
      return 0
    } finally {
      await tables.close()
      lock.release()
    }
  },
}
