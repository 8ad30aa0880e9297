/** The schema registry's client against one that fails: what it asks, what it believes, what it keeps. */
import type { ServerResponse } from 'node:http'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createSchemaRegistry,
  type SchemaRegistry,
  type SchemaRegistrySettings,
} from '../../../../services/log/registry/schema-registry.ts'
import {
  alwaysAnswers,
  type FakeSchemaRegistry,
  failureOf,
  startFakeSchemaRegistry,
} from '../../../support/fake-schema-registry.ts'

const stored = { schema: '{"type":"string"}' }
const told = { schema: { type: 'string' } }

let fake: FakeSchemaRegistry
let nowMs: number

beforeEach(async () => {
  nowMs = 0
  fake = await startFakeSchemaRegistry()
  return () => fake.close()
})

/** A client whose clock only the test and its own pauses move. */
function open(settings: Partial<SchemaRegistrySettings> = {}): SchemaRegistry {
  return createSchemaRegistry(
    { url: fake.url, ...settings },
    {
      monotonicMs: () => nowMs,
      sleep: async ms => {
        nowMs += ms
      },
    },
  )
}

function ids(count: number): Set<number> {
  return new Set(Array.from({ length: count }, (_, n) => n + 1))
}

describe('what an id stands for', () => {
  test('is asked for once', async () => {
    const registry = open()
    fake.put(7, stored)
    expect(registry.known(7)).toBeUndefined()
    await registry.learn(new Set([7]))
    nowMs += 1e9
    await registry.learn(new Set([7]))
    expect(registry.known(7)).toEqual(told)
    expect(fake.calls).toEqual(['GET /schemas/ids/7'])
  })

  test('is nothing only if the registry said so several times, because an instance may be behind', async () => {
    const registry = open()
    fake.put(7, stored)
    let isBehind = true
    fake.misbehave((response, call) => {
      const takes = isBehind && alwaysAnswers(404, '{"error_code":40403}')(response, call)
      isBehind = false
      return takes
    })
    await registry.learn(new Set([7]))
    expect(registry.known(7)).toEqual(told)
    await registry.learn(new Set([8]))
    expect(registry.known(8)).toEqual({ reason: expect.stringMatching(/^is not in the schema registry/) })
    expect(fake.calls.filter(call => call.endsWith('/8'))).toHaveLength(3)
  })

  test('is nothing for a bounded time without a request, and is requested again after it', async () => {
    const registry = open({ missingMs: 10_000 })
    await registry.learn(new Set([7]))
    const asked = fake.calls.length
    fake.put(7, stored)
    nowMs += 9_999
    await registry.learn(new Set([7]))
    expect(registry.known(7)).toHaveProperty('reason')
    expect(fake.calls).toHaveLength(asked)
    nowMs += 1
    expect(registry.known(7)).toBeUndefined()
    await registry.learn(new Set([7]))
    expect(registry.known(7)).toEqual(told)
  })

  test('is requested only once in that time, however often its records come', async () => {
    const registry = open({ missingMs: 1_000 })
    for (let second = 0; second < 5; second++, nowMs += 1_000) {
      await registry.learn(new Set([7]))
      await registry.learn(new Set([7]))
    }
    expect(fake.calls).toHaveLength(3 + 4)
  })

  test('is not requested if no registry can have such an id', async () => {
    const registry = open()
    await registry.learn(new Set([2 ** 31, 2 ** 32 - 1]))
    expect(registry.known(2 ** 31)).toEqual({
      reason: expect.stringMatching(/^is not an id that a schema registry gives/),
    })
    expect(fake.calls).toEqual([])
  })
})

describe('the bounds', () => {
  test('no more requests run at once than may, however many ids there are', async () => {
    const registry = open({ requestsMax: 3 })
    const held: ServerResponse[] = []
    fake.misbehave(response => {
      held.push(response)
      // Answered by threes: with fewer at once it would stand still.
      if (held.length === 3) for (const one of held.splice(0)) one.end(JSON.stringify(stored))
      return true
    })
    await registry.learn(ids(39))
    expect(fake.calls).toHaveLength(39)
    expect(fake.openMost()).toBe(3)
  })

  test('after a failure nothing more is asked, and what was told is kept', async () => {
    const registry = open({ requestsMax: 2 })
    for (const id of ids(40)) fake.put(id, stored)
    fake.misbehave((response, call) => call.endsWith('/5') && alwaysAnswers(503)(response, call))
    await failureOf(registry.learn(ids(40)))
    expect(fake.calls.length).toBeLessThanOrEqual(6)
    const asked = fake.calls.length
    fake.misbehave(undefined)
    await registry.learn(ids(40))
    expect(fake.calls.length - asked).toBeLessThanOrEqual(36)
    expect([...ids(40)].map(registry.known)).toEqual(Array(40).fill(told))
  })
})

describe('the id of a schema', () => {
  test('is looked up before it is registered, so that a producer without the right to register does not need it', async () => {
    const id = await open().register('pledges-value', told.schema)
    fake.misbehave((response, call) => call.endsWith('/versions') && alwaysAnswers(403)(response, call))
    expect(await open().register('pledges-value', told.schema)).toBe(id)
    expect(await failureOf(open().register('campaigns-value', told.schema))).toMatchObject({
      retryable: false,
      message: expect.stringMatching(/campaigns-value: it refuses the credentials/),
    })
  })

  test('is found also if the registry refuses to register it because another process did so at that moment', async () => {
    let others: number | undefined
    fake.misbehave((response, call) => {
      if (!call.endsWith('/versions')) return false
      fake.misbehave(undefined)
      void open()
        .register('pledges-value', told.schema)
        .then(id => {
          others = id
          alwaysAnswers(409)(response, call)
        })
      return true
    })
    const id = await open().register('pledges-value', told.schema)
    expect(others).toBe(id)
  })
})
