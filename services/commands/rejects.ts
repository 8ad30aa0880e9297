import { readConfig } from '../shared/config.ts'
import {
  type Command,
  defaultDataDirectory,
  type Io,
  readArguments,
  UsageError,
  wholeNumber,
} from './command.ts'
import { filterOptions, readFilter, readPlace } from './rejects-arguments.ts'
import { runRejectsList } from './rejects-list.ts'
import { type RetryOptions, runRejectsRetry } from './rejects-retry.ts'
import { runRejectsShow } from './rejects-show.ts'
import { openRejectSource, type RejectSource } from './rejects-source.ts'

export const rejectsCommand: Command = {
  usage: `usage: pledgeview rejects list [FILTER] [--by-reason] [--limit N] [--data-dir D] [--json]
       pledgeview rejects show PLACE [--data-dir D] [--json]
       pledgeview rejects retry (PLACE... | --all-matching [FILTER]) [--dry-run] [--data-dir D] [--json]

Rejects are records that could not be projected. A PLACE is where one stood: TOPIC/PARTITION/OFFSET, as list prints it.
Distributed (PLEDGEVIEW_KAFKA_BROKERS is set and --data-dir is not given) they are in the reject topic: of it the latest
million messages are looked at, for a minute, and what was left out is told. The total counts its messages: a reject
that was kept twice, after a kill, counts twice and is listed once.

list   The latest first; with --json each with its original key and value in base64.
show   Everything about one: reason, times, headers, key, value, and the event where it can be decoded. It prints what
       the record holds, private data included, and nothing else does.
retry  Decodes with the program and the schemas as they are now. What is an event now is appended to its topic as it
       came (the journal has no headers) and is projected like any other; what is still none is counted by reason. The
       rejects stay. To repeat a retry is harmless, and so is a service that runs meanwhile; one of an older program or
       other settings has to be started anew before, and one that was told of no such schema asks again after 10 s.
       Distributed, it waits up to 30 s for the projectors to reach the end of the log, and leaves out what the ledger
       has already, or newer: a compacted topic keeps what was appended last. Exit code 1 where nothing could be
       retried.

FILTER, of which all that is given has to hold:
  --topic T      campaigns, pledges or api-keys
  --reason TEXT  the reason holds this text
  --since TIME   rejected at this time or later: ISO 8601 (UTC unless it says otherwise), or how long ago, like 90s,
                 15m, 2h, 3d, 1w
  --until TIME   rejected before this time

  --by-reason    count, first, last and an example of each reason, the most frequent first
  --limit N      at most so many rejects, or reasons (default 20, 10000 at most)
  --dry-run      append nothing, and say what would be
  --data-dir D   the embedded service's data directory (default ${defaultDataDirectory})
  --json         print one JSON object on stdout`,

  async run(args, io) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: {
        ...filterOptions,
        'by-reason': { type: 'boolean', default: false },
        limit: { type: 'string' },
        'all-matching': { type: 'boolean', default: false },
        'dry-run': { type: 'boolean', default: false },
        'data-dir': { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    })
    const run = readCall(positionals, values)
    const source = await openRejectSource(values['data-dir'], readConfig(process.env))
    try {
      return await run(source, io)
    } finally {
      await source.close()
    }
  },
}

type Values = Parameters<typeof readFilter>[0] & {
  'by-reason': boolean
  limit?: string
  'all-matching': boolean
  'dry-run': boolean
  json: boolean
}

type Run = (source: RejectSource, io: Io) => Promise<number>

/** What is to be done, checked before anything is opened. Throws `UsageError`. */
function readCall([verb, ...rest]: string[], values: Values): Run {
  const { json } = values
  const filter = readFilter(values, Date.now())
  switch (verb) {
    case 'list': {
      if (rest.length > 0) throw new UsageError(`unexpected argument ${JSON.stringify(rest[0])}`)
      refuse(values, ['all-matching', 'dry-run'])
      const limit = wholeNumber('limit', values.limit ?? '20', { min: 1, max: 10_000 })
      const options = { filter, limit, byReason: values['by-reason'], json }
      return (source, io) => runRejectsList(source, options, io)
    }
    case 'show': {
      const [place, ...others] = rest
      if (place === undefined || others.length > 0) throw new UsageError('rejects show takes one PLACE')
      refuse(values, [...filterNames, 'by-reason', 'limit', 'all-matching', 'dry-run'])
      const at = readPlace(place)
      return (source, io) => runRejectsShow(source, at, { json }, io)
    }
    case 'retry': {
      refuse(values, ['by-reason', 'limit'])
      const options = { wanted: readWanted(rest, filter, values), isDry: values['dry-run'], json }
      return (source, io) => runRejectsRetry(source, options, io)
    }
    default:
      throw new UsageError('the rejects commands are list, show and retry')
  }
}

function readWanted(
  places: string[],
  filter: ReturnType<typeof readFilter>,
  values: Values,
): RetryOptions['wanted'] {
  const isAll = values['all-matching']
  if (isAll === places.length > 0) throw new UsageError('rejects retry takes PLACEs, or --all-matching')
  if (isAll) return { filter }
  refuse(values, filterNames)
  return { places: places.map(readPlace) }
}

const filterNames = Object.keys(filterOptions) as (keyof typeof filterOptions)[]

function refuse(values: Values, names: readonly (keyof Values)[]): void {
  const given = names.find(name => values[name] !== undefined && values[name] !== false)
  if (given) throw new UsageError(`--${given} means nothing here`)
}
