import { resolve } from 'node:path'
import { type OnExported, writeExport } from '../exports/write.ts'
import { createPaintedLine, grouped, megabytes, progressText } from '../runtime/progress.ts'
import { presentOf } from '../tables/generation-log.ts'
import { type Command, commonOptions, printJson, readArguments, UsageError } from './command.ts'
import { type Model, onModel } from './on-model.ts'

export const exportCommand: Command = {
  help: {
    call: 'export DIR [--data-dir D] [--json]',
    does:
      'Writes a whole copy of the public campaigns into a folder of DIR: campaigns.ndjson.gz and campaigns.parquet, each with every ' +
      'campaign as the API shows it on its own page, and manifest.json. The copy is there when it is whole, and then the earlier ' +
      'one is removed. If PLEDGEVIEW_EXPORT_DIR names DIR, the API and the portal offer the latest copy. If ' +
      'PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given, it reads from ClickHouse. The service may run meanwhile. Then the copy ' +
      'has what is folded, and may lack events that were appended seconds ago.',
    options: commonOptions,
    examples: ['export exports', 'export exports --json'],
    cost:
      'ClickHouse copies the campaigns into a temporary table, and reads them twice: a minute for 400,000 campaigns, and disk space for ' +
      'two copies, in ClickHouse and in DIR. It changes nothing in the tables.',
  },

  async run(args, io) {
    const { values, positionals } = readArguments(args, commonOptions, { allowPositionals: true })
    const [directory, ...more] = positionals
    if (directory === undefined || more.length > 0) throw new UsageError('export takes one directory')
    const line = createPaintedLine(io.stderr)
    const startedMs = performance.now()
    const show: OnExported = (stage, done = 0, total) => {
      const elapsedMs = performance.now() - startedMs
      const label = stage === 'copy' ? 'reading the campaigns' : stage
      line.paint(() => progressText({ label, done, total, elapsedMs }))
    }
    const write = async ({ databases, ...model }: Model) => {
      const tables = model.session()
      await databases.follow(tables)
      return writeExport({ tables, databases: presentOf(databases) }, resolve(directory), show)
    }
    const writing = onModel(values['data-dir'], write, { isCaughtUp: true })
    const manifest = await writing.finally(line.wipe)
    if (values.json) printJson(io, { directory: resolve(directory), ...manifest })
    else {
      io.stdout.write(`${grouped(manifest.campaigns)} campaigns, as of ${manifest.as_of}\n`)
      for (const { name, bytes } of manifest.files) io.stdout.write(`${name.padEnd(22)}${megabytes(bytes)}\n`)
    }
    return 0
  },
}
