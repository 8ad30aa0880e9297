/**
 * Change events of an Avro object container file, as a sink of Kafka Connect writes them: one event type a file, told by
 * the name of the writer's record, its namespace aside. The file has no keys and no tombstones: keys are derived.
 */
import { type StateSequenceReader, schemas, stateSequenceReader } from '../../contracts/events/codec.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  type EventType,
  eventTypes,
  keyOf,
  type PledgeState,
  type StateEvent,
} from '../../contracts/events/event.ts'
import { faultOf } from '../../contracts/events/rules.ts'
import type { ByteReader } from './archive-bytes.ts'
import { type ContainerBlock, readContainerBlocks, readContainerHeader } from './archive-container.ts'
import { ArchiveError, messageOf } from './archive-error.ts'

type AnyState = CampaignState | PledgeState | ApiKeyState

/** The events of a file, some at a time, each decoded when it is asked for. */
export type ContainerEvents = () => AsyncGenerator<Iterable<ChangeEvent>>

const typesByName: ReadonlyMap<string, EventType> = new Map(
  eventTypes.map(type => [nameOf(schemas[type]) ?? type, type]),
)

/** Reads the header. Throws `ArchiveError` where it says that no event of ours can be in the file. */
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
      throw new ArchiveError(path, place, `is not what the file's schema says: ${messageOf(cause)}`, cause)
    }
    // The reader is the type's own, so state and type belong together.
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
    throw new ArchiveError(path, {}, `its schema is not a record; known are the records ${known}`)
  }
  const type = typesByName.get(name)
  if (type) return type
  throw new ArchiveError(path, {}, `its schema is the record ${JSON.stringify(name)}; known are ${known}`)
}

/** The name of a record schema without its namespace, which may stand in the name itself. */
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
