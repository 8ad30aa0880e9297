import { readConfig } from '../../runtime/config.ts'
import { type Command, type Io, readArguments, UsageError, wholeNumber } from '../command.ts'
import { filterOptions, readFilter, readPlace } from './arguments.ts'
import { rejectsHelp } from './help.ts'
import { runRejectsList } from './list.ts'
import { type RetryOptions, runRejectsRetry } from './retry.ts'
import { runRejectsShow } from './show.ts'
import { type RejectSource, withRejects } from './source.ts'

export const rejectsCommand: Command = {
  help: rejectsHelp,

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
    return withRejects(values['data-dir'], readConfig(process.env), source => run(source, io))
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

/** Reads the call before anything is opened. Throws `UsageError`. */
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
  if (isAll) return filter
  refuse(values, filterNames)
  if (places.length > placesMax) throw new UsageError(`rejects retry takes at most ${placesMax} PLACEs`)
  return { places: places.map(readPlace) }
}

const placesMax = 1_000
const filterNames = Object.keys(filterOptions) as (keyof typeof filterOptions)[]

function refuse(values: Values, names: readonly (keyof Values)[]): void {
  const given = names.find(name => values[name] !== undefined && values[name] !== false)
  if (given) throw new UsageError(`--${given} is not an option of this command`)
}
