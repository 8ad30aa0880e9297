import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileSchema } from '../../../contracts/events/avro-types.ts'
import {
  currentStateReader,
  encodeState,
  schemas,
  stateReader,
  unframe,
} from '../../../contracts/events/codec.ts'
import type { CampaignState, PledgeState, StateEvent } from '../../../contracts/events/event.ts'
import { pledgeEvent, sampleCampaign, sampleReward } from '../../support/events/sample-events.ts'
import { stateEvent } from './event-arbitraries.ts'

interface RecordSchema {
  fields: { name: string; type: unknown; default?: unknown }[]
}

const pledge = pledgeEvent({ campaign_id: 'c_1', pledge_id: 'p_1', reward_id: 'r_1' }).data as PledgeState
const campaign = sampleCampaign({
  ...{ campaign_id: 'c_1', tags: ['x', 'y'], rewards: [sampleReward({ reward_id: 'r_1' })] },
})

describe('the codec', () => {
  test('gives back every state that was encoded, 64-bit integers and all of Unicode included', () => {
    fc.assert(
      fc.property(stateEvent, event => {
        const unframed = unframe(encodeState(event))
        if ('reason' in unframed) throw new Error(unframed.reason)
        expect({ ...currentStateReader(event.type)(unframed.avroBinary) }).toEqual(event.data)
      }),
    )
  })
})

describe('a value with damaged bytes', () => {
  const avroBinary = bytesOf('campaign', campaign)

  test('is an error at any length at which it was cut, never a state', () => {
    const read = currentStateReader('campaign')
    for (let length = 0; length < avroBinary.length; length++) {
      expect(() => read(avroBinary.subarray(0, length)), `${length} bytes`).toThrow()
    }
  })

  test.each([
    ['two thousand million items', [0x80, 0x80, 0x80, 0x80, 0x10]],
    ['more items than can be counted', [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
  ])('cannot claim %s, in a field that is read or one that is skipped', (_name, claim) => {
    const schema = { type: 'record', name: 'Pledge', namespace: 'pledgeview.events' }
    const { fields } = schemas.pledge as RecordSchema
    for (const type of ['array', 'map']) {
      const collection = type === 'array' ? { type, items: 'string' } : { type, values: 'string' }
      const writer = { ...schema, fields: [{ name: 'extra', type: collection }, ...fields] }
      const value = Buffer.concat([Buffer.from(claim), Buffer.from([0]), bytesOf('pledge', pledge)])
      const read = stateReader('pledge', writer)
      expect(() => read(value)).toThrow('items cannot be in')
    }
    const beforeTags = avroBinary.subarray(0, avroBinary.indexOf('\x04\x02x\x02y'))
    const value = Buffer.concat([beforeTags, Buffer.from(claim)])
    expect(() => currentStateReader('campaign')(value)).toThrow('items cannot be in')
  })

  test('cannot claim more items in all of its blocks than it has bytes, if an item takes none', () => {
    const { fields, ...schema } = schemas.pledge as RecordSchema
    const extra = { name: 'extra', type: { type: 'array', items: 'null' } }
    const read = stateReader('pledge', { ...schema, fields: [extra, ...fields] })
    const block = Buffer.from([0xd0, 0x0f])
    const withBlocks = (count: number) =>
      Buffer.concat([...Array(count).fill(block), Buffer.from([0]), bytesOf('pledge', pledge)])
    expect(() => read(withBlocks(100_000))).toThrow(/^201000 items cannot be in \d{6} bytes$/)
    // What was claimed is forgotten when the next value is read.
    const small = Buffer.concat([Buffer.from([0x02, 0x00]), bytesOf('pledge', pledge)])
    expect({ ...read(small) }).toEqual(pledge)
  })

  test('is not read behind its end, where every item of an array would be a new object', () => {
    const beforeRewards = avroBinary.subarray(0, avroBinary.indexOf('\x02\x06r_1'))
    const thousandTiers = Buffer.concat([beforeRewards, Buffer.from([0xd0, 0x0f]), Buffer.alloc(1_000)])
    expect(() => currentStateReader('campaign')(thousandTiers)).toThrow('the bytes end within an array')
  })

  test('is not trusted about how many bytes to skip', () => {
    const { fields, ...schema } = schemas.pledge as RecordSchema
    const extra = { name: 'extra', type: { type: 'array', items: 'string' } }
    // A block of one string that claims to be -10 bytes long: to jump there would be to go round for ever.
    const value = Buffer.concat([Buffer.from([0x01, 0x13, 0x02, 0x61, 0x00]), bytesOf('pledge', pledge)])
    const read = stateReader('pledge', { ...schema, fields: [extra, ...fields] })
    expect({ ...read(value) }).toEqual(pledge)
  })
})

describe('reading what another version of the schema wrote', () => {
  const current = schemas.pledge as RecordSchema

  test('a newer writer: an added field is passed over, an added status is unknown', () => {
    const newer = structuredClone(current)
    newer.fields.splice(2, 0, {
      name: 'note',
      type: { type: 'map', values: { type: 'array', items: 'string' } },
    })
    const status = newer.fields.find(({ name }) => name === 'status')?.type as { symbols: string[] }
    status.symbols.splice(1, 0, 'DISPUTED')
    const write = (state: object): Buffer =>
      compileSchema(newer).toBuffer({ note: { a: ['b'], c: [] }, ...state })

    const read = stateReader('pledge', newer)
    expect({ ...read(write({ ...pledge, status: 'DISPUTED' })) }).toEqual({ ...pledge, status: 'UNKNOWN' })
    expect({ ...read(write(pledge)) }).toEqual(pledge)
  })

  test('a writer with narrower integers: they are widened', () => {
    const narrow = structuredClone(current)
    for (const field of narrow.fields) if (field.name === 'amount_minor') field.type = 'int'
    const read = stateReader('pledge', narrow)
    expect({ ...read(compileSchema(narrow).toBuffer(pledge)) }).toEqual(pledge)
  })

  test('a writer whose generator makes each field nullable: what has a value is read, and a null is an error that names the field', () => {
    const fields = current.fields.map(({ name, type }) => ({
      name,
      type: Array.isArray(type) ? type : ['null', type],
    }))
    const { write, read } = writerOf({ ...current, fields })
    expect({ ...read(write(pledge)) }).toEqual(pledge)
    for (const name of ['backer_id', 'status', 'amount_minor']) {
      expect(() => read(write({ ...pledge, [name]: null })), name).toThrow(`${name} is null`)
    }
    expect({ ...read(write(pledge)) }).toEqual(pledge)
  })

  test('a writer that widens a nullable field: only values of the new type are errors', () => {
    const widened = structuredClone(current)
    for (const field of widened.fields)
      if (field.name === 'reward_id') field.type = ['null', 'long', 'string']
    const { write, read } = writerOf(widened)
    for (const reward_id of ['r_1', null]) {
      expect({ ...read(write({ ...pledge, reward_id })) }).toEqual({ ...pledge, reward_id })
    }
    expect(() => read(write({ ...pledge, reward_id: 7 }))).toThrow(
      'reward_id is long, which does not fit our schema',
    )
  })

  test('a writer whose union has no type of ours is refused when its reader is made', () => {
    const foreign = structuredClone(current)
    for (const field of foreign.fields) if (field.name === 'version') field.type = ['null', 'string']
    expect(() => stateReader('pledge', foreign)).toThrow('version: cannot read "string" as "long"')
  })

  test('a writer whose record or field does not fit is refused with its name, also in a nested record', () => {
    const foreign = structuredClone(schemas.campaign) as RecordSchema
    const creator = foreign.fields.find(({ name }) => name === 'creator')?.type as unknown as RecordSchema
    for (const field of creator.fields) if (field.name === 'name') field.type = 'long'
    expect(() => stateReader('campaign', foreign)).toThrow('creator: name: cannot read "long" as "string"')
    const renamed = { ...foreign, name: 'CampaignEvent', namespace: 'acme' }
    expect(() => stateReader('campaign', renamed)).toThrow(
      'its record is acme.CampaignEvent, not pledgeview.events.Campaign',
    )
  })
})

function writerOf(schema: object) {
  const type = compileSchema(schema)
  return { write: (state: object): Buffer => type.toBuffer(state), read: stateReader('pledge', schema) }
}

function bytesOf(type: 'campaign' | 'pledge', data: CampaignState | PledgeState): Buffer {
  return encodeState({ type, data } as StateEvent).subarray(5)
}
