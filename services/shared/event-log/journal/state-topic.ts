/**
 * State topics in the journal. Each read first takes what was appended since the last one, so it is never behind: while
 * nothing was appended, that is one look at the end of a table.
 */
import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { PortalTopic } from '../../../../contracts/events/portal-event.ts'
import { messageOf } from '../../message-of.ts'
import {
  defaultStateBounds,
  type StateTopic,
  type StateTopicOptions,
  StateTopicUnavailable,
} from '../state-topic.ts'
import { createStateMemory, encodeChanges } from '../state-topic-memory.ts'
import { inWriteTransaction, onlyPartition, openJournalFile } from './file.ts'

export interface JournalStateTopicOptions extends Pick<StateTopicOptions, 'bounds'> {
  /** The log's clock, in ms since the epoch. */
  now?: () => number
}

/** The table that holds a state topic. */
export const stateTable: Readonly<Record<PortalTopic, string>> = {
  accounts: 'state_accounts',
  notices: 'state_notices',
}

const schema = readFileSync(new URL('./state-schema.sql', import.meta.url), 'utf8')
// A slice of this many small records is read in a few milliseconds.
const sliceRowsMax = 500

/** Opens the journal's state topic, and creates what is missing. Resolves when memory has all of it. */
export async function openJournalStateTopic<T extends PortalTopic>(
  path: string,
  topic: T,
  { logger }: { logger: Logger },
  { bounds = defaultStateBounds, now = Date.now }: JournalStateTopicOptions = {},
): Promise<StateTopic<T>> {
  const db = await openJournalFile(path)
  try {
    await inWriteTransaction(db, path, () => db.exec(schema))
    const opened = over(db, path, topic, { memory: createStateMemory(topic, bounds, logger), now })
    await opened.refresh()
    return opened
  } catch (cause) {
    db.close()
    throw cause
  }
}

function over<T extends PortalTopic>(
  db: DatabaseSync,
  path: string,
  topic: T,
  { memory, now }: { memory: ReturnType<typeof createStateMemory<T>>; now: () => number },
): StateTopic<T> {
  const table = stateTable[topic]
  const after = db.prepare(
    `SELECT offset, key, value FROM ${table} WHERE offset > ? ORDER BY offset LIMIT ${sliceRowsMax}`,
  )
  const insert = db.prepare(`INSERT INTO ${table} (appended_at, key, value) VALUES (?, ?, ?)`)
  let last = 0
  let failure: string | undefined
  let lastWrite: Promise<unknown> = Promise.resolve()

  /** Returns whether there may be more. */
  function readSlice(): boolean {
    const rows = after.all(last)
    for (const { offset, key, value } of rows) {
      last = Number(offset)
      memory.apply({ partition: onlyPartition, offset: last, key: bytesOf(key), value: bytesOf(value) })
    }
    return rows.length === sliceRowsMax
  }

  async function refresh(): Promise<void> {
    try {
      while (readSlice()) await yieldToEventLoop()
      failure = undefined
    } catch (cause) {
      failure = messageOf(cause)
      throw new StateTopicUnavailable(`the topic ${topic} of ${path} cannot be read: ${failure}`, { cause })
    }
  }

  async function append(changes: ReturnType<typeof encodeChanges>): Promise<void> {
    try {
      await inWriteTransaction(db, path, () => {
        for (const { key, value } of changes) insert.run(now(), key, value)
      })
    } catch (cause) {
      throw new StateTopicUnavailable(`the topic ${topic} cannot be written: ${messageOf(cause)}`, { cause })
    }
    await refresh()
  }

  return {
    topic,
    refresh,
    async get(key) {
      await refresh()
      return memory.get(key)
    },
    async group(group) {
      await refresh()
      return memory.group(group)
    },
    async all() {
      await refresh()
      return memory.all()
    },
    write(changes) {
      // A connection has one transaction at a time.
      const done = lastWrite.then(() => {
        memory.checkRoom(changes)
        return append(encodeChanges(changes))
      })
      lastWrite = done.catch(() => undefined)
      return done
    },
    skipped: memory.skipped,
    health: () => ({ ok: failure === undefined, detail: failure ?? 'up to date' }),
    async close() {
      await lastWrite
      if (db.isOpen) db.close()
    },
  }
}

function bytesOf(value: unknown): Uint8Array | null {
  return value instanceof Uint8Array ? value : null
}
