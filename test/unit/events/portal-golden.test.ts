/** The golden examples of the portal's topics, and what of other bytes. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { schemaIds } from '../../../contracts/events/codec.ts'
import { compileForm, type Holder } from '../../../contracts/events/json-forms.ts'
import {
  decodePortalEvent,
  encodePortalEvent,
  portalSchemaIds,
  portalSchemas,
} from '../../../contracts/events/portal-codec.ts'
import {
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

describe.each(portalTypes)('the golden examples of type %s', type => {
  const examples = readGolden(type)

  test.each(examples)('are read and written as these bytes: $name', ({ line, topic, key, value_hex }) => {
    const { data, ...rest } = JSON.parse(line) as Holder
    expect(rest.type).toBe(type)
    expect(topic).toBe(portalTopicOf[type])
    if (value_hex === null) {
      expect(data).toBeNull()
      expect(rest.key).toBe(key)
      return
    }
    const holder: Holder = { data }
    expect(compileForm(portalSchemas[type]).read(holder, 'data')).toBeUndefined()
    const event = { type, data: holder.data } as PortalEvent
    expect(portalKeyOf(event)).toBe(key)
    expect(encodePortalEvent(event).toString('hex')).toBe(value_hex)
    expect(decodePortalEvent(topic, key, Buffer.from(value_hex, 'hex'))).toEqual(event)
  })

  test('have a state and a tombstone', () => {
    expect(examples.map(({ value_hex }) => value_hex === null)).toEqual(expect.arrayContaining([true, false]))
  })

  test('are no event under another key, or in another topic', () => {
    const [{ key, topic, value_hex } = { key: '', topic: 'accounts' as const, value_hex: '' }] = examples
    const value = Buffer.from(value_hex ?? '', 'hex')
    const other = topic === 'accounts' ? 'notices' : 'accounts'
    expect(decodePortalEvent(topic, `${key}x`, value)).toEqual({ reason: "the key is not the state's own" })
    expect(decodePortalEvent(other, key, value)).toEqual({
      reason: expect.stringContaining('is unknown in the topic'),
    })
  })

  test('damaged in any byte, are a state or a reason that does not quote them, and never throw', () => {
    const [{ key, topic, value_hex } = { key: '', topic: 'accounts' as const, value_hex: '' }] = examples
    const bytes = Buffer.from(value_hex ?? '', 'hex')
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.uint8Array({ minLength: 1, maxLength: 9 }), (at, damage) => {
        const damaged = Buffer.from(bytes)
        damaged.set(damage.subarray(0, bytes.length - at), at)
        const event = decodePortalEvent(topic, key, damaged)
        if ('reason' in event) expect(event.reason).not.toContain('mirror.example')
        else expect(portalKeyOf(event)).toBe(key)
      }),
    )
  })
})

test('the ids of the portal and of the change events are all different', () => {
  const ids = [...Object.values(schemaIds), ...Object.values(portalSchemaIds)]
  expect(new Set(ids).size).toBe(ids.length)
})

function readGolden(name: string): GoldenState[] {
  const url = new URL(`../../../contracts/events/golden/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8')) as GoldenState[]
}
