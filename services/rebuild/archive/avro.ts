/**
 * Change events of an Avro object container file, as a Kafka Connect sink writes it. A file has one event type, which is the
 * name of the writer's record without its namespace. It has no keys and no tombstones: keys are derived from the states.
 */
import { type StateSequenceReader, schemas, stateSequenceReader } from '../../../contracts/events/codec.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  type EventType,
  eventTypes,
  keyOf,
  type PledgeState,
  type StateEvent,
} from '../../../contracts/events/event.ts'
import { faultOf } from '../../../contracts/events/rules.ts'
import { messageOf } from '../../shared/message-of.ts'
import type { ByteReader } from './bytes.ts'
import { type ContainerBlock, readContainerBlocks, readContainerHeader } from './container.ts'
import { ArchiveError } from './error.ts'

type AnyState = CampaignState | PledgeState | ApiKeyState

/** The events of a file, in groups. Each event is decoded when it is requested. */
export type ContainerEvents = () => AsyncGenerator<Iterable<ChangeEvent>>

const typesByName: ReadonlyMap<string, EventType> = new Map(
  eventTypes.map(type => [nameOf(schemas[type]) ?? type, type]),
)

/** Reads the header. Throws `ArchiveError` if the file cannot contain events of ours. */
export async function openContainerEvents(path: string, bytes: ByteReader): Promise<ContainerEvents> {
  const header = await readContainerHeader(path, bytes)
  const type = typeOf(path, header.schema)
  const read = compiledReader(path, type, header.schema as object)
  return async function* () {
    let objectsBefore = 0
    for await (const block of readContainerBlocks(path, bytes, header)) {
      yield eventsOf(path, type, read, block, objectsBefore)
      objectsBefore += block.objectCount
    }
  }
}

function* eventsOf(
  path: string,
  type: EventType,
  read: StateSequenceReader<AnyState>,
  { number, objectCount, avroBinary }: ContainerBlock,
  objectsBefore: number,
): Generator<ChangeEvent> {
  let start = 0
  for (let i = 1; i <= objectCount; i++) {
    const place = { block: number, object: objectsBefore + i }
    let data: AnyState
    try {
      const { state, end } = read(avroBinary, start)
      data = state
      start = end
    } catch (cause) {
      throw new ArchiveError(path, place, `does not match the file's schema: ${messageOf(cause)}`, cause)
    }
    // The reader belongs to this type, so state and type fit together.
    const state = { type, data } as StateEvent
    const event = { ...state, key: keyOf(state) } as ChangeEvent
    const fault = faultOf(event)
    if (fault) throw new ArchiveError(path, place, `${fault.field} ${fault.reason}`)
    yield event
  }
  if (start < avroBinary.length) {
    const rest = avroBinary.length - start
    throw new ArchiveError(
      path,
      { block: number },
      `is damaged: ${rest} bytes are left after its ${objectCount} objects`,
    )
  }
}

function typeOf(path: string, schema: unknown): EventType {
  const known = [...typesByName.keys()].join(', ')
  const name = nameOf(schema)
  if (name === undefined) {
    throw new ArchiveError(path, {}, `its schema is not a record; the known records are ${known}`)
  }
  const type = typesByName.get(name)
  if (type) return type
  throw new ArchiveError(
    path,
    {},
    `its schema is the record ${JSON.stringify(name)}; the known records are ${known}`,
  )
}

/** The name of a record schema without its namespace. The namespace may be part of the name. */
function nameOf(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  if (!('type' in schema && schema.type === 'record' && 'name' in schema)) return undefined
  return typeof schema.name === 'string' ? schema.name.slice(schema.name.lastIndexOf('.') + 1) : undefined
}

function compiledReader(path: string, type: EventType, schema: object): StateSequenceReader<AnyState> {
  try {
    return stateSequenceReader(type, schema)
  } catch (cause) {
    throw new ArchiveError(path, {}, `its schema cannot be read as a ${type}: ${messageOf(cause)}`, cause)
  }
}
