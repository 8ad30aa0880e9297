import { distributedCopies } from '../distributed/purge-copies.ts'
import { embeddedCopies } from '../embedded/purge-copies.ts'
import { purge } from '../erasure/purge.ts'
import type { PurgeReport } from '../erasure/report.ts'
import { sleep } from '../runtime/async/sleep.ts'
import { type Command, commonOptions, printJson, readArguments, wholeNumber } from './command.ts'
import { onModel } from './on-model.ts'

const timeoutSeconds = { default: 600, min: 1, max: 86_400 }
const options = {
  '--dry-run': 'print what it would do, and change nothing',
  '--rejects': 'remove all rejects, also those whose entity is not deleted',
  '--timeout SECONDS': `how long to wait for the projector, and for each table (default ${timeoutSeconds.default})`,
  ...commonOptions,
}

export const purgeCommand: Command = {
  help: {
    call: 'purge [--dry-run] [--rejects] [--timeout SECONDS] [--data-dir D] [--json]',
    does:
      'Makes what events have deleted or replaced really gone, for an erasure request. It compacts the journal by key, merges ' +
      'the tables, drops the tables from before a rebuild, and prints for each copy of the data what it did, what is left, and ' +
      'until when. If PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given, it works on ClickHouse, and says until when ' +
      'Kafka and the caches keep the rest. The service may run meanwhile. Run it again at any time, also after a kill. Exit ' +
      'code: 0 done; 1 something could not be reached; 2 called wrongly.',
    options,
    examples: ['purge --dry-run', 'purge'],
    cost:
      'It rewrites every table and reads the whole journal: seconds for each million of rows, and disk space for a second copy of ' +
      'the largest table. After it, rebuild rollback is not possible.',
  },

  async run(args, io) {
    const { values } = readArguments(args, options)
    const timeout = values.timeout ?? String(timeoutSeconds.default)
    const settings = {
      isDry: values['dry-run'],
      removesRejects: values.rejects,
      msMax: 1000 * wholeNumber('timeout', timeout, timeoutSeconds),
      now: Date.now,
      monotonicMs: () => performance.now(),
      sleep,
    }
    const report = await onModel(values['data-dir'], async model => {
      const copies = await (model.isEmbedded ? embeddedCopies(model) : distributedCopies(model))
      return purge(copies, settings, model.config)
    })
    if (values.json) printJson(io, report)
    else io.stdout.write(reportText(report))
    return report.is_complete ? 0 : 1
  },
}

const notReached =
  'Not everything could be reached. Do what the column "left" says, and run the same command again.\n'

/** A table with one line for each copy. Long cells stay on their line, so that the text can be searched. */
function reportText({ is_dry_run, is_complete, copies }: PurgeReport): string {
  const rows = [
    ['copy', is_dry_run ? 'it would' : 'done', 'left', 'until'],
    ...copies.map(({ copy, done, left, until }) => [copy, done, left ?? 'nothing', until ?? '-']),
  ]
  const widths = [0, 1, 2].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const cells = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  const lines = rows.map(row => `${cells(row).join('  ').trimEnd()}\n`)
  return `${lines.join('')}${is_complete ? '' : notReached}`
}
