/**
 * The memory of a state topic: records go in, in the order of the log, and the last one of each key stays. A record that
 * cannot be read changes nothing: the earlier state of its key stays.
 */
import { isUtf8 } from 'node:buffer'
import type { Logger } from 'pino'
import { decodePortalEvent, encodePortalEvent } from '../../../contracts/events/portal-codec.ts'
import { type PortalEventOf, type PortalTopic, portalKeyOf } from '../../../contracts/events/portal-event.ts'
import { grouped } from '../progress.ts'
import { type KeyedState, type StateBounds, type StateChange, StateTopicFull } from './state-topic.ts'

/** A record as the log has it. */
export interface StateRecord {
  partition: number
  offset: number
  key: Uint8Array | null
  value: Uint8Array | null
  /** Why the log's own reader could not read it. */
  unreadable?: string | undefined
}

export interface StateMemory<T extends PortalTopic> {
  apply(record: StateRecord): void
  get(key: string): PortalEventOf[T] | undefined
  group(group: string): KeyedState<T>[]
  all(): KeyedState<T>[]
  /** Throws `StateTopicFull` if the changes need more room than there is. */
  checkRoom(changes: readonly StateChange<T>[]): void
  /** How many records were skipped because they cannot be read. */
  skipped(): number
}

/** The most bytes of a value. A state has a few hundred, a notice a few thousand. */
export const stateBytesMax = 64 * 1024
const keyBytesMax = 1_024
const skippedLinesMax = 100

interface Held<T extends PortalTopic> {
  state: PortalEventOf[T]
  bytes: number
}

export function createStateMemory<T extends PortalTopic>(
  topic: T,
  { keysMax, bytesMax }: StateBounds,
  logger: Logger,
): StateMemory<T> {
  const held = new Map<string, Held<T>>()
  const keysOf = new Map<string, Set<string>>()
  let bytes = 0
  let skipped = 0

  function remove(key: string): void {
    const present = held.get(key)
    if (!present) return
    bytes -= present.bytes
    held.delete(key)
    const group = groupOf(key)
    const keys = keysOf.get(group)
    keys?.delete(key)
    if (keys?.size === 0) keysOf.delete(group)
  }

  function put(key: string, entry: Held<T>): void {
    remove(key)
    held.set(key, entry)
    bytes += entry.bytes
    const group = groupOf(key)
    const keys = keysOf.get(group)
    if (keys) keys.add(key)
    else keysOf.set(group, new Set([key]))
  }

  function skip({ partition, offset }: StateRecord, reason: string): void {
    skipped++
    // The place is enough to find the record. Its content may be an e-mail address.
    if (skipped <= skippedLinesMax) {
      logger.error(
        { topic, partition, offset, reason },
        'a record of the topic cannot be read and is skipped',
      )
    }
  }

  return {
    apply(record) {
      const { value } = record
      const read = keyOf(record)
      if ('reason' in read) return skip(record, read.reason)
      if (value === null) return remove(read.key)
      if (value.length > stateBytesMax) {
        return skip(
          record,
          `the value has ${grouped(value.length)} bytes, more than ${grouped(stateBytesMax)}`,
        )
      }
      const event = decodePortalEvent(topic, read.key, value)
      if ('reason' in event) return skip(record, event.reason)
      put(read.key, { state: event, bytes: read.key.length + value.length })
    },
    get: key => held.get(key)?.state,
    group: group => statesOf([...(keysOf.get(group) ?? [])].sort(), held),
    all: () => statesOf(held.keys(), held),
    checkRoom(changes) {
      const added = changes.filter(({ key, state }) => state !== null && !held.has(key)).length
      if (added === 0 || (held.size + added <= keysMax && bytes < bytesMax)) return
      const most = `${grouped(keysMax)} keys and ${grouped(bytesMax)} bytes`
      throw new StateTopicFull(
        `the topic ${topic} has ${grouped(held.size)} keys and ${grouped(bytes)} bytes: a process keeps it in memory, up to ${most}`,
      )
    },
    skipped: () => skipped,
  }
}

/** The bytes of the changes, in their order. Throws an `Error` that names the key's place if a change is not valid. */
export function encodeChanges<T extends PortalTopic>(
  changes: readonly StateChange<T>[],
): { key: Buffer; value: Buffer | null }[] {
  return changes.map(({ key, state }) => {
    if (state === null) return { key: Buffer.from(key), value: null }
    if (portalKeyOf(state) !== key) throw new Error(`the key of this ${state.type} is not its own`)
    const value = encodePortalEvent(state)
    if (value.length > stateBytesMax) {
      throw new Error(
        `this ${state.type} has ${grouped(value.length)} bytes, more than ${grouped(stateBytesMax)}`,
      )
    }
    return { key: Buffer.from(key), value }
  })
}

function statesOf<T extends PortalTopic>(
  keys: Iterable<string>,
  held: ReadonlyMap<string, Held<T>>,
): KeyedState<T>[] {
  const states: KeyedState<T>[] = []
  for (const key of keys) {
    const entry = held.get(key)
    if (entry) states.push({ key, state: entry.state })
  }
  return states
}

function keyOf({ key, unreadable }: StateRecord): { key: string } | { reason: string } {
  if (unreadable !== undefined) return { reason: unreadable }
  if (key === null) return { reason: 'the record has no key' }
  if (key.length > keyBytesMax) return { reason: `the key has ${grouped(key.length)} bytes` }
  if (!isUtf8(key)) return { reason: 'the key is not UTF-8' }
  return { key: Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8') }
}

function groupOf(key: string): string {
  const slash = key.indexOf('/')
  return slash < 0 ? key : key.slice(0, slash)
}
