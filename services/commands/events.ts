import { kafkaSettings, stateEncoderOf } from '../distributed.ts'
import { openKafkaWriter } from '../log/kafka/writer.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import {
  type Command,
  commonOptions,
  dataDirOption,
  defaultDataDirectory,
  embeddedDirectory,
  readArguments,
  UsageError,
  wholeNumber,
} from './command.ts'
import { type AppendTarget, runEventsAppend } from './events-append.ts'
import { jsonOption } from './help.ts'

export const eventsCommand: Command = {
  help: {
    call: 'events append FILE [OPTIONS]',
    does: 'Appends change events to the event log.',
    subcommands: {
      append: {
        call: 'events append FILE [--from-line N] [--data-dir D] [--json]',
        does:
          'Validates change events, one JSON object per line, and appends them to the event log. It stops at the first bad ' +
          'line and names it; the events before that line are appended. The log is Kafka if PLEDGEVIEW_KAFKA_BROKERS is ' +
          'set and --data-dir is not given. Otherwise it is the journal in the data directory.',
        options: {
          FILE: 'a path, or - for stdin',
          '--from-line N':
            'begin with line N (the first is 1); use it to go on after you have repaired a bad line',
          ...dataDirOption,
          ...jsonOption,
        },
        examples: ['events append events.ndjson', 'events append - --from-line 2001 < events.ndjson'],
        cost: 'Memory stays small for any size of file. Events that are appended twice change nothing but the size of the log.',
      },
    },
  },

  async run(args, io) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: {
        ...commonOptions,
        'from-line': { type: 'string' },
      },
    })
    const [verb, file, ...rest] = positionals
    if (verb !== 'append') throw new UsageError('the events command is: events append FILE')
    if (file === undefined || rest.length > 0)
      throw new UsageError('events append takes one FILE, or - for stdin')
    const fromLine = values['from-line']
    const config = readConfig(process.env)
    const directory = embeddedDirectory(values['data-dir'], config)
    return runEventsAppend(
      {
        file,
        dataDir: directory ?? defaultDataDirectory,
        json: values.json,
        ...(fromLine !== undefined && {
          fromLine: wholeNumber('from-line', fromLine, { min: 1, max: Number.MAX_SAFE_INTEGER }),
        }),
      },
      io,
      directory === undefined ? () => openKafkaTarget(config) : undefined,
    )
  },
}

async function openKafkaTarget(config: Config): Promise<AppendTarget> {
  const encode = await stateEncoderOf(config)
  return { encode, writer: await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') }) }
}
