/** The promises of a state topic, for every implementation. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type StateChange,
  type StateTopic,
  StateTopicFull,
  type StateTopicOptions,
} from '../../../services/shared/event-log/state-topic.ts'
import { accountEvent as account, accountChange as change } from '../../support/accounts.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

export interface StateTopicUnderTest {
  /** A process's view of the topic `accounts`. */
  open(logger: Logger, options?: StateTopicOptions): Promise<StateTopic<'accounts'>>
  /** Appends a record to it with any bytes. */
  appendRaw(key: Uint8Array | null, value: Uint8Array | null): Promise<void>
  /** Removes what later records replace, as far as the log does that now. */
  compact(): Promise<void>
  remove(): Promise<void>
}

type Topic = StateTopic<'accounts'>

export function describeStateTopic(name: string, make: () => Promise<StateTopicUnderTest>): void {
  describe(`a state topic ${name}`, () => {
    let log: StateTopicUnderTest
    let opened: Topic[] = []
    let lines: ReturnType<typeof recordingLogger>

    beforeEach(async () => {
      log = await make()
      lines = recordingLogger()
    })

    afterEach(async () => {
      await Promise.all(opened.map(topic => topic.close()))
      opened = []
      await log.remove()
    })

    async function open(options?: StateTopicOptions): Promise<Topic> {
      const topic = await log.open(lines.logger, options)
      opened.push(topic)
      return topic
    }

    test('shows a write to its writer at once, to others after a refresh or soon, and to a process that starts later', async () => {
      const [writer, other] = await Promise.all([open(), open()])
      await writer.write([change('a', 'a@one.example')])
      expect(await writer.get('a')).toEqual(account('a', 'a@one.example'))
      await other.refresh()
      expect(await other.get('a')).toEqual(account('a', 'a@one.example'))
      await writer.write([change('a', 'a@two.example')])
      await expect.poll(() => other.get('a')).toEqual(account('a', 'a@two.example'))
      expect(await (await open()).all()).toEqual([{ key: 'a', state: account('a', 'a@two.example') }])
    })

    test('removes a key with its tombstone, and takes the key back when it is written again', async () => {
      const [one, two] = await Promise.all([open(), open()])
      await one.write([change('a'), change('b')])
      await two.write([{ key: 'a', state: null }])
      await one.refresh()
      expect(await one.get('a')).toBeUndefined()
      expect(keysOf(await one.all())).toEqual(['b'])
      await one.write([change('a', 'again@one.example')])
      expect(await (await open()).get('a')).toEqual(account('a', 'again@one.example'))
    })

    test('lists a group by key: the group itself and what is under it, and nothing whose name only begins so', async () => {
      const topic = await open()
      await topic.write([
        integration('a', '2'),
        change('a'),
        integration('a', '1'),
        integration('ab', '1'),
        change('b'),
      ])
      expect(keysOf(await topic.group('a'))).toEqual(['a', 'a/1', 'a/2'])
      expect(keysOf(await topic.group('ab'))).toEqual(['ab/1'])
      await topic.write([{ key: 'a/1', state: null }])
      expect(keysOf(await topic.group('a'))).toEqual(['a', 'a/2'])
      expect(await topic.group('none')).toEqual([])
    })

    test('skips records that cannot be read, keeps the earlier state, and logs their places without their content', async () => {
      const before = await open()
      await before.write([change('a', 'kept@one.example')])
      const bad: [Uint8Array | null, Uint8Array | null][] = [
        [null, Buffer.from('secret@one.example')],
        [Buffer.from([0xff, 0xfe]), Buffer.from('secret@one.example')],
        [Buffer.from('a'), Buffer.from('secret@one.example')],
        [Buffer.from('a'), Buffer.from([0, 0, 0, 0, 99, 1, 2, 3])],
        [Buffer.from('a'), Buffer.from([0, 0, 0, 0, 11, 200, 1])],
        [Buffer.from('a'), Buffer.alloc(0)],
        [Buffer.from('a'), Buffer.alloc(100_000)],
      ]
      for (const [key, value] of bad) await log.appendRaw(key, value)
      await before.write([change('b')])
      for (const topic of [before, await open()]) {
        expect(await topic.get('a')).toEqual(account('a', 'kept@one.example'))
        expect(keysOf(await topic.all())).toEqual(['a', 'b'])
      }
      const places = lines.lines.filter(({ msg }) => String(msg).includes('skipped'))
      // Each of the two processes has read them.
      expect(places).toHaveLength(2 * bad.length)
      expect(places[0]).toMatchObject({
        topic: 'accounts',
        partition: expect.any(Number),
        offset: expect.any(Number),
      })
      expect(JSON.stringify(lines.lines)).not.toContain('one.example')
    })

    test('has the same states in every process, whatever was written at once in whatever order', async () => {
      const [one, two] = await Promise.all([open(), open()])
      const writes = fc.array(
        fc.record({ by: fc.nat(1), key: fc.constantFrom('a', 'b', 'c'), state: fc.boolean() }),
        { minLength: 1, maxLength: 12 },
      )
      await fc.assert(
        fc.asyncProperty(writes, async made => {
          const processes = [one, two]
          const wanted = made.map(({ by, key, state }) => ({
            by,
            change: state ? change(key, `${randomUUID()}@one.example`) : { key, state: null },
          }))
          await Promise.all(wanted.map(write => processes[write.by]?.write([write.change])))
          await Promise.all(processes.map(topic => topic.refresh()))
          const fresh = await open()
          const states = await Promise.all(
            [...processes, fresh].map(async topic => sorted(await topic.all())),
          )
          expect(states[1]).toEqual(states[0])
          expect(states[2]).toEqual(states[0])
        }),
        { numRuns: 6 },
      )
    })

    test('refuses a new key when memory is full, and still takes changes and tombstones of the keys it has', async () => {
      const topic = await open({ bounds: { keysMax: 2, bytesMax: 1_000_000 } })
      await topic.write([change('a'), change('b')])
      await expect(topic.write([change('c')])).rejects.toThrow(StateTopicFull)
      await topic.write([change('a', 'new@one.example')])
      await topic.write([{ key: 'b', state: null }])
      await topic.write([change('c')])
      expect(keysOf(await topic.all())).toEqual(['a', 'c'])
      const small = await open({ bounds: { keysMax: 100, bytesMax: 10 } })
      // What is there already is kept, so that answers stay right.
      expect(keysOf(await small.all())).toEqual(['a', 'c'])
      await expect(small.write([change('d')])).rejects.toThrow('bytes')
    })

    test('refuses what is no valid state before it writes anything', async () => {
      const topic = await open()
      const wrongKey = { key: 'b', state: account('a') }
      await expect(topic.write([change('c'), wrongKey])).rejects.toThrow('key of this account')
      await expect(topic.write([change('c'), change('a/b')])).rejects.toThrow('slash')
      await expect(topic.write([change('c'), change('a', 'x'.repeat(70_000))])).rejects.toThrow('bytes')
      expect(await (await open()).all()).toEqual([])
    })

    test('keeps what counts, and nothing else, when it is compacted, beside a process that has it open', async () => {
      const topic = await open()
      for (let n = 0; n < 5; n++) await topic.write([change('a', `${n}@one.example`), change('b')])
      await topic.write([{ key: 'b', state: null }])
      await log.compact()
      await topic.write([change('c')])
      for (const process of [topic, await open()]) {
        expect(sorted(await process.all())).toEqual([
          { key: 'a', state: account('a', '4@one.example') },
          { key: 'c', state: account('c') },
        ])
      }
    })

    test('reads many states from the start', async () => {
      const topic = await open()
      const changes = Array.from({ length: 3_000 }, (_, n) => change(`key-${n}`))
      await topic.write(changes)
      await topic.write(changes.slice(0, 1_000).map(({ key }) => ({ key, state: null })))
      expect(await (await open()).all()).toHaveLength(2_000)
    })
  })
}

function integration(accountId: string, id: string): StateChange<'accounts'> {
  const data = {
    integration_id: id,
    account_id: accountId,
    name: 'Mirror',
    url: 'https://mirror.example/',
    contact_email: 'dev@mirror.example',
    created_at: 1,
    changed_at: 1,
  }
  return { key: `${accountId}/${id}`, state: { type: 'integration', data } }
}

function keysOf(states: readonly { key: string }[]): string[] {
  return states.map(({ key }) => key).sort()
}

function sorted<K extends { key: string }>(states: readonly K[]): K[] {
  return states.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}
