/** The schema registry's client against one that fails: what it asks, what it believes, what it keeps, what it tells. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createSchemaRegistry, type SchemaRegistry } from '../../../services/shared/schema-registry.ts'
import { SchemaRegistryError } from '../../../services/shared/schema-registry-answers.ts'
import {
  alwaysAnswers,
  type FakeSchemaRegistry,
  startFakeSchemaRegistry,
} from '../../support/fake-schema-registry.ts'
import { makeCertificate } from '../../support/kafka/certificate.ts'

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
function open(settings: Partial<Parameters<typeof createSchemaRegistry>[0]> = {}): SchemaRegistry {
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

async function failureOf(work: Promise<unknown>): Promise<SchemaRegistryError> {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof SchemaRegistryError)) throw new Error(`not a failure of the registry: ${error}`)
  return error
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

  test('is nothing only where the registry said so several times: an instance may be behind', async () => {
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
    expect(registry.known(8)).toEqual({ reason: expect.stringMatching(/^is none that the schema registry/) })
    expect(fake.calls.filter(call => call.endsWith('/8'))).toHaveLength(3)
  })

  test('is nothing for a bounded time, in which nobody is asked, and is asked for again after it', async () => {
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

  test('is not asked for where no registry has such an id', async () => {
    const registry = open()
    await registry.learn(new Set([2 ** 31, 2 ** 32 - 1]))
    expect(registry.known(2 ** 31)).toEqual({ reason: expect.stringMatching(/^is none/) })
    expect(fake.calls).toEqual([])
  })

  test('is not known while the registry fails, whatever it answers then', async () => {
    const registry = open()
    for (const [status, body] of [
      [404, ''],
      [500, ''],
      [200, '{'],
    ] as const) {
      fake.misbehave(alwaysAnswers(status, body))
      expect(await failureOf(registry.learn(new Set([7])))).toMatchObject({ retryable: true })
      expect(registry.known(7)).toBeUndefined()
    }
    fake.misbehave(undefined)
    fake.put(7, stored)
    await registry.learn(new Set([7]))
    expect(registry.known(7)).toEqual(told)
  })

  test('is remembered of so many ids, and of all that one call asked for', async () => {
    const registry = open({ schemasMax: 3 })
    for (const id of ids(10)) fake.put(id, stored)
    await registry.learn(ids(5))
    expect([...ids(5)].map(registry.known)).toEqual(Array(5).fill(told))
    await registry.learn(new Set([5, 6]))
    expect([...ids(6)].map(id => registry.known(id) !== undefined)).toEqual([
      ...[false, false, false],
      ...[true, true, true],
    ])
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

  test('a registry that is silent is given up, before its answer and in the middle of it', async () => {
    const registry = open({ requestMsMax: 50 })
    fake.misbehave(() => true)
    const silent = await failureOf(registry.learn(new Set([7])))
    expect(silent).toMatchObject({ retryable: true, message: expect.stringContaining('within 50 ms') })
    fake.misbehave(response => {
      response.writeHead(200)
      return response.write('{"schema":')
    })
    expect((await failureOf(registry.learn(new Set([7])))).message).toContain('within 50 ms')
  })

  test('an answer without end is not read to the end', async () => {
    const registry = open()
    fake.misbehave(response => {
      response.writeHead(200)
      const more = (): void => {
        if (!response.destroyed) response.write(' '.repeat(1_000_000), more)
      }
      more()
      return true
    })
    expect((await failureOf(registry.learn(new Set([7])))).message).toContain('longer than')
  })

  test('an aborted call ends at once', async () => {
    const registry = open()
    const abort = new AbortController()
    fake.misbehave(() => true)
    const learning = failureOf(registry.learn(new Set([7]), abort.signal))
    await vi.waitFor(() => expect(fake.calls).toHaveLength(1))
    abort.abort()
    expect((await learning).message).not.toContain('within')
    await failureOf(registry.learn(new Set([7]), abort.signal))
    expect(fake.calls).toHaveLength(1)
  })

  test('a registry that is not there is a failure that may pass', async () => {
    const registry = open({ url: `http://127.0.0.1:${await freePort()}` })
    const failure = await failureOf(registry.learn(new Set([7])))
    expect(failure).toMatchObject({ retryable: true, message: expect.stringContaining('ECONNREFUSED') })
  })
})

describe('the way to the registry', () => {
  const secret = 'pässwörd:with a colon'
  const closers: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })

  test('takes its credentials along, to this registry only, and tells nobody', async () => {
    const registry = open({ user: 'reader', password: secret })
    const encoded = Buffer.from(`reader:${secret}`).toString('base64')
    const elsewhere = await startFakeSchemaRegistry()
    closers.push(elsewhere.close)
    fake.misbehave(response => {
      response.writeHead(307, { location: `${elsewhere.url}/schemas/ids/7` }).end()
      return true
    })
    const failures = [await failureOf(registry.learn(new Set([7])))]
    expect(fake.headers().authorization).toBe(`Basic ${encoded}`)
    expect(elsewhere.calls).toEqual([])
    for (const status of [401, 403, 500]) {
      fake.misbehave(alwaysAnswers(status, 'no'))
      failures.push(await failureOf(registry.learn(new Set([7]))))
    }
    fake.misbehave(response => Boolean(response.destroy()))
    failures.push(await failureOf(registry.learn(new Set([7]))))
    for (const failure of failures) {
      const texts = `${failure.stack} ${JSON.stringify(failure)} ${failure.cause}`
      expect(texts).not.toContain(secret)
      expect(texts).not.toContain(encoded)
    }
  })

  test('has no credentials where none are given', async () => {
    await open().learn(new Set([7]))
    expect(fake.headers().authorization).toBeUndefined()
  })

  test('may lead through a path', async () => {
    const nested = await startFakeSchemaRegistry({ path: '/apis/ccompat/v7' })
    closers.push(nested.close)
    nested.put(7, stored)
    for (const url of [nested.url, `${nested.url}/`]) {
      const registry = open({ url })
      await registry.learn(new Set([7]))
      expect(registry.known(7)).toEqual(told)
    }
  })

  test('is verified: a certificate is trusted by the authority that is given, and by no other', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-registry-'))
    closers.push(() => rm(directory, { recursive: true }))
    const { ca, keyStore } = await makeCertificate(directory)
    const pem = await readFile(keyStore, 'utf8')
    const secure = await startFakeSchemaRegistry({ tls: { key: pem, cert: pem } })
    closers.push(secure.close)
    secure.put(7, stored)
    const trusting = open({ url: secure.url, caCertificate: ca })
    await trusting.learn(new Set([7]))
    expect(trusting.known(7)).toEqual(told)
    expect((await failureOf(open({ url: secure.url }).learn(new Set([7])))).message).toContain('SELF_SIGNED')
  })

  test.each([
    'registry:8081',
    'ftp://registry',
    'http://user:password@registry',
    'http://registry?a=b',
    'http://registry/#a',
  ])('is not %s', url => {
    expect(() => open({ url })).toThrow(TypeError)
    expect(() => open({ url })).not.toThrow('password@')
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}
