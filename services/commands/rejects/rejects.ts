import { topics } from '../../../contracts/events/event.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { RejectPlace } from '../../tables/rejects.ts'
import type { RejectFilter } from '../../tables/stored-rejects.ts'
import {
  type Command,
  commonOptions,
  noSubcommand,
  readArguments,
  UsageError,
  type Values,
  wholeNumber,
} from '../command.ts'
import { type filterOptions, listOptions, rejectsHelp, retryOptions } from './help.ts'
import { listReasons, listRejects } from './list.ts'
import { retryRejects } from './retry.ts'
import { showReject } from './show.ts'
import { withRejects } from './source.ts'

const placesMax = 1_000

/** Each subcommand reads its own arguments before anything is opened. */
export const rejectsCommand: Command = {
  help: rejectsHelp,

  async run([verb, ...args], io) {
    switch (verb) {
      case 'list': {
        const { values } = readArguments(args, listOptions)
        const limit = wholeNumber('limit', values.limit ?? '20', { min: 1, max: 10_000 })
        const filter = { ...readFilter(values, Date.now()), ...(values.open && { isOpen: true }) }
        const options = { filter, limit, json: values.json }
        const list = values['by-reason'] ? listReasons : listRejects
        return withRejects(values['data-dir'], source => list(source, options, io))
      }
      case 'show': {
        const { values, positionals } = readArguments(args, commonOptions, { allowPositionals: true })
        const [place, ...others] = positionals
        if (place === undefined || others.length > 0) throw new UsageError('rejects show takes one PLACE')
        const at = readPlace(place)
        return withRejects(values['data-dir'], source => showReject(source, at, values.json, io))
      }
      case 'retry': {
        const { values, positionals } = readArguments(args, retryOptions, { allowPositionals: true })
        if (values['all-matching'] === positionals.length > 0)
          throw new UsageError('rejects retry takes PLACEs, or --all-matching')
        if (positionals.length > placesMax)
          throw new UsageError(`rejects retry takes at most ${placesMax} PLACEs`)
        const filter = readFilter(values, Date.now())
        if (positionals.length > 0 && Object.keys(filter).length > 0)
          throw new UsageError('a filter goes with --all-matching, not with PLACEs')
        const wanted =
          positionals.length > 0 ? { places: positionals.map(readPlace) } : { ...filter, isOpen: true }
        const options = { wanted, isDry: values['dry-run'], json: values.json }
        return withRejects(values['data-dir'], source => retryRejects(source, options, io))
      }
      default:
        throw noSubcommand('rejects', rejectsHelp, verb)
    }
  },
}

/** Throws `UsageError` that names the option. */
export function readFilter(values: Partial<Values<typeof filterOptions>>, now: number): RejectFilter {
  const { topic, reason, since, until } = values
  return {
    ...(topic !== undefined && { topic: readTopic(topic) }),
    ...(reason !== undefined && { reasonPart: reason }),
    ...(since !== undefined && { since: readTime('since', since, now) }),
    ...(until !== undefined && { until: readTime('until', until, now) }),
  }
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: dayMs }

/** Unix ms: of a UTC time in ISO 8601, or of an age such as 90s, 15m, 2h or 3d. */
function readTime(option: string, text: string, now: number): number {
  const [, amount, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (unitMs[unit] ?? 0)
  const at = Date.parse(text)
  // JavaScript reads February 30th as a day of March.
  if (
    /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text) &&
    new Date(at || 0).toISOString().startsWith(text.slice(0, 10))
  )
    return at
  const asked = JSON.stringify(text)
  throw new UsageError(`--${option} takes a time like 2026-11-01T08:30:00Z or an age like 2h, not ${asked}`)
}

/** A place as `rejects list` prints it: `pledges/0/17`. */
export function readPlace(text: string): RejectPlace {
  const [, topic, partition, offset] = /^([a-z-]+)\/(\d{1,15})\/(\d{1,15})$/.exec(text) ?? []
  if (topic === undefined)
    throw new UsageError(`a PLACE is TOPIC/PARTITION/OFFSET, like pledges/0/17, not ${JSON.stringify(text)}`)
  return { topic: readTopic(topic), partition: Number(partition), offset: Number(offset) }
}

function readTopic(text: string): RejectPlace['topic'] {
  const topic = topics.find(known => known === text)
  if (!topic) throw new UsageError(`a topic is one of ${topics.join(', ')}, not ${JSON.stringify(text)}`)
  return topic
}
