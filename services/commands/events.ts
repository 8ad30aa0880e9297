import { type Config, readConfig } from '../shared/config.ts'
import { isDistributed, kafkaSettings, stateEncoderOf } from '../shared/distributed.ts'
import { openKafkaWriter } from '../shared/event-log/kafka/writer.ts'
import { createLogger } from '../shared/logger.ts'
import { type Command, defaultDataDirectory, readArguments, UsageError, wholeNumber } from './command.ts'
import { type AppendTarget, runEventsAppend } from './events-append.ts'

export const eventsCommand: Command = {
  usage: `usage: pledgeview events append FILE [--from-line N] [--data-dir D] [--json]

Validates change events, one JSON object a line, and appends them to the event log. FILE is a path, or - for stdin.
It stops at the first bad line and names it; what stands before it is appended. The log is Kafka where
PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given, else the journal of a data directory.

  --from-line N   begin with line N (1 is the first): the way on after a line was repaired
  --data-dir D    the embedded service's data directory (default ${defaultDataDirectory})
  --json          print one JSON object on stdout`,

  async run(args, io) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: {
        'data-dir': { type: 'string' },
        'from-line': { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const [verb, file, ...rest] = positionals
    if (verb !== 'append') throw new UsageError('the events command is: events append FILE')
    if (file === undefined || rest.length > 0)
      throw new UsageError('events append takes one FILE, or - for stdin')
    const fromLine = values['from-line']
    const config = readConfig(process.env)
    const isKafka = isDistributed(config) && values['data-dir'] === undefined
    return runEventsAppend(
      {
        file,
        dataDir: values['data-dir'] ?? defaultDataDirectory,
        json: values.json,
        ...(fromLine !== undefined && {
          fromLine: wholeNumber('from-line', fromLine, { min: 1, max: Number.MAX_SAFE_INTEGER }),
        }),
      },
      io,
      isKafka ? () => openKafkaTarget(config) : undefined,
    )
  },
}

async function openKafkaTarget(config: Config): Promise<AppendTarget> {
  const encode = await stateEncoderOf(config)
  return { encode, writer: await openKafkaWriter(kafkaSettings(config), { logger: createLogger('error') }) }
}
