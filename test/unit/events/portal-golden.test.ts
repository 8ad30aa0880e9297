/** The golden examples of the portal's topics, and what of other bytes. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { schemaIds } from '../../../contracts/events/codec.ts'
import { compileForm, type Holder } from '../../../contracts/events/json-forms.ts'
import {
  decodePortalRecord,
  encodePortalEvent,
  portalBytesMax,
  portalSchemaIds,
  portalSchemas,
} from '../../../contracts/events/portal-codec.ts'
import {
  lifeOf,
  type PortalEvent,
  type PortalTopic,
  portalKeyOf,
  portalTopicOf,
  portalTypes,
} from '../../../contracts/events/portal-event.ts'

interface GoldenState {
  name: string
  line: string
  topic: PortalTopic
  key: string
  value_hex: string | null
}

const appendedAt = Date.parse('2026-08-23T10:00:00.000Z')

function decode({ topic, key, value_hex }: GoldenState, changed?: Buffer) {
  const value = changed ?? (value_hex === null ? null : Buffer.from(value_hex, 'hex'))
  return decodePortalRecord(topic, key, { value, appendedAt })
}

describe.each(portalTypes)('the golden examples of type %s', type => {
  const examples = readGolden(type).filter(({ value_hex }) => value_hex !== null)
  const [example = {} as GoldenState] = examples

  test.each(examples)('are read and written as these bytes: $name', golden => {
    const { data, ...rest } = JSON.parse(golden.line) as Holder
    expect(rest.type).toBe(type)
    expect(golden.topic).toBe(portalTopicOf[type])
    const holder: Holder = { data }
    expect(compileForm(portalSchemas[type]).read(holder, 'data')).toBeUndefined()
    const event = { type, data: holder.data } as PortalEvent
    expect(portalKeyOf(event)).toBe(golden.key)
    expect(encodePortalEvent(event).toString('hex')).toBe(golden.value_hex)
    expect(decode(golden)).toEqual(event)
  })

  test('are no event under another key, or in another topic', () => {
    const { key, topic } = example
    const other = topic === 'accounts' ? 'notices' : 'accounts'
    expect(decode({ ...example, key: `${key}x` })).toEqual({ reason: "the key is not the state's own" })
    expect(decode({ ...example, topic: other })).toEqual({
      reason: expect.stringContaining('is unknown in the topic'),
    })
  })

  test('damaged in any byte, are a state or a reason that does not quote them, and never throw', () => {
    const bytes = Buffer.from(example.value_hex ?? '', 'hex')
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.uint8Array({ minLength: 1, maxLength: 9 }), (at, damage) => {
        const damaged = Buffer.from(bytes)
        damaged.set(damage.subarray(0, bytes.length - at), at)
        const event = decode(example, damaged)
        if ('reason' in event) expect(event.reason).not.toContain('mirror.example')
        else if ('data' in event) expect(portalKeyOf(event)).toBe(example.key)
      }),
    )
  })
})

test.each(readGolden('notice').filter(({ value_hex }) => value_hex === null))(
  'a tombstone removes a notice: $name',
  golden => {
    expect(decode(golden)).toEqual({ type: 'removed-notice', notice_id: golden.key, at: appendedAt })
  },
)

test('a tombstone changes no account, because it ranks below every life of one; a purge writes one for a key that nothing has', () => {
  expect(decodePortalRecord('accounts', 'purge', { value: null, appendedAt })).toMatchObject({
    type: 'account',
    data: { account_id: 'purge', email: '', version: appendedAt },
  })
  for (const at of [appendedAt, -1, 2 ** 42, 2 ** 43, Number.MAX_SAFE_INTEGER]) {
    const event = decodePortalRecord('accounts', 'purge', { value: null, appendedAt: at }) as PortalEvent
    expect(lifeOf(BigInt((event as PortalEvent & { type: 'account' }).data.version)), `at ${at}`).toBe(0n)
  }
  expect(decodePortalRecord('accounts', 'a/b', { value: null, appendedAt })).toEqual({
    reason: expect.stringContaining('account_id'),
  })
})

test('a value that is larger than the portal writes any is a reject, and is not read', () => {
  const [notice] = readGolden('notice') as [GoldenState]
  const written = decode(notice) as Extract<PortalEvent, { type: 'notice' }>
  const text = 'x'.repeat(portalBytesMax)
  expect(() => encodePortalEvent({ ...written, data: { ...written.data, text } })).toThrow('more than 65536')
  const large = Buffer.alloc(65 * 1024, notice.value_hex ?? '', 'hex')
  expect(decode(notice, large)).toEqual({ reason: 'the value has 66560 bytes, more than 65536' })
})

test('the ids of the portal and of the change events are all different', () => {
  const ids = [...Object.values(schemaIds), ...Object.values(portalSchemaIds)]
  expect(new Set(ids).size).toBe(ids.length)
})

function readGolden(name: string): GoldenState[] {
  const url = new URL(`../../../contracts/events/golden/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8')) as GoldenState[]
}
