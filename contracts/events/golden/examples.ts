/** The golden examples beside this file: events, each as its NDJSON line and as the bytes that a producer publishes. */
import { columns } from '../../tables/campaign-columns.ts'
import { encodeState, schemaIdOf, schemaIds } from '../codec.ts'
import { type ChangeEvent, type EventType, type StateEvent, topicOf } from '../event.ts'
import { formatEvent, parseEventLine } from '../ndjson.ts'

export interface GoldenExample {
  name: string
  line: string
  topic: (typeof topicOf)[EventType]
  key: string
  /** The framed value in hex; null is a tombstone. */
  value_hex: string | null
}

/**
 * The examples of this type, at least one of which has the present schema. If none has it, the first example is added again with this
 * schema and with the fields of campaigns that were added. Existing bytes never change: they are what producers have published.
 */
export function withPresentSchema(type: EventType, examples: readonly GoldenExample[]): GoldenExample[] {
  const isPresent = ({ value_hex }: GoldenExample) =>
    schemaIdOf(Buffer.from(value_hex ?? '', 'hex')) === schemaIds[type]
  const [first] = examples
  if (first === undefined || examples.some(isPresent)) return [...examples]
  const { data, ...rest } = JSON.parse(first.line)
  const added = type === 'campaign' ? columns.filter(column => 'default' in column) : []
  const given = Object.fromEntries(added.map(({ name, event = name, example = null }) => [event, example]))
  const parsed = parseEventLine(JSON.stringify({ ...rest, data: { ...data, ...given } }))
  if ('fault' in parsed) throw new Error(`the example of ${parsed.fault.field} ${parsed.fault.reason}`)
  const event: ChangeEvent = parsed.event
  return [
    ...examples,
    {
      name: `${first.name}, with the fixed id ${schemaIds[type]}`,
      line: formatEvent(event),
      topic: topicOf[type],
      key: event.key,
      value_hex: encodeState(event as StateEvent).toString('hex'),
    },
  ]
}
