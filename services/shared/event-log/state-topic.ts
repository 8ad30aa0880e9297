/**
 * The port of a state topic: a compacted topic that a process keeps whole in memory. The portal keeps accounts and notices so.
 *
 * Every implementation keeps these promises (test/integration/event-log/state-topic.conformance.ts):
 * - the record of a key that was appended last counts, and a tombstone removes the key;
 * - a read includes everything that this process has written, and what other processes had written `behindMsMax` before;
 * - a write that resolved survives a crash of the process, and every process reads it;
 * - a record that cannot be read is skipped and logged, once, by its place and never with its content;
 * - if the log is away, reads answer from memory for `behindMsMax`, and then throw `StateTopicUnavailable`. When the log is
 *   back, they answer again, without a restart.
 */
import type { PortalEventOf, PortalTopic } from '../../../contracts/events/portal-event.ts'

/** A key and its state. A null state is a tombstone. */
export interface StateChange<T extends PortalTopic> {
  key: string
  state: PortalEventOf[T] | null
}

export interface KeyedState<T extends PortalTopic> {
  key: string
  state: PortalEventOf[T]
}

export interface StateTopic<T extends PortalTopic> {
  readonly topic: T
  /** The state of a key. */
  get(key: string): Promise<PortalEventOf[T] | undefined>
  /** All states of a group, by key: those of the key `group`, and of the keys that begin with `group/`. */
  group(group: string): Promise<KeyedState<T>[]>
  /** All states, by the time of their last change in this process's memory. For sweeps. */
  all(): Promise<KeyedState<T>[]>
  /** Resolves when memory has everything that was in the topic at the moment of the call. */
  refresh(): Promise<void>
  /**
   * Appends in order, and resolves when the changes are durable and in memory. Throws `StateTopicFull` if there are too many
   * keys, and `StateTopicUnavailable` if the log is away: then nothing, a first part or all of it may be in the log.
   */
  write(changes: readonly StateChange<T>[]): Promise<void>
  /** How many records memory has skipped because they cannot be read. If there are any, a key that is missing may exist. */
  skipped(): number
  /** Whether reads answer now, for `/readyz`. */
  health(): { ok: boolean; detail: string }
  close(): Promise<void>
}

export interface StateTopicOptions {
  /** How old an answer from memory may be, ms. Default 2 s. */
  behindMsMax?: number
  /** How long a read or a write waits for the log, ms. Default 10 s. */
  waitMsMax?: number
  bounds?: StateBounds
}

/** What memory may hold. A write of a new key beyond it is refused; what other processes write is kept. */
export interface StateBounds {
  keysMax: number
  /** Of keys and values as they are in the log. */
  bytesMax: number
}

export const defaultStateBounds: StateBounds = { keysMax: 500_000, bytesMax: 256 * 1024 ** 2 }
export const defaultBehindMsMax = 2_000
export const defaultWaitMsMax = 10_000

/** The log does not answer, or answers too late. The message names the topic and the cause. */
export class StateTopicUnavailable extends Error {
  override name = 'StateTopicUnavailable'
}

/** There is no room for a new key. */
export class StateTopicFull extends Error {
  override name = 'StateTopicFull'
}
