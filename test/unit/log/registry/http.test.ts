/** Requests to the schema registry: in bounded time, with the right credentials, and to no other address. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  createSchemaRegistry,
  type SchemaRegistry,
  type SchemaRegistrySettings,
  schemaMissing,
} from '../../../../services/log/registry/schema-registry.ts'
import { makeCertificate, openssl } from '../../../support/kafka/certificate.ts'
import { needs } from '../../../support/runner/requirements.ts'
import {
  alwaysAnswers,
  type FakeSchemaRegistry,
  failureOf,
  startFakeSchemaRegistry,
} from '../../../support/servers/fake-schema-registry.ts'

const stored = { schema: '{"type":"string"}' }
const told = { schema: { type: 'string' } }

let fake: FakeSchemaRegistry

beforeEach(async () => {
  fake = await startFakeSchemaRegistry()
  return () => fake.close()
})

function open(settings: Partial<SchemaRegistrySettings> = {}): SchemaRegistry {
  return createSchemaRegistry({ url: fake.url, ...settings }, { sleep: async () => {} })
}

describe('a registry that fails', () => {
  test('is given up if it is silent, before its answer or in the middle of it', async () => {
    const registry = open({ requestMsMax: 50 })
    fake.misbehave(() => true)
    const silent = await failureOf(registry.learn(new Set([7])))
    expect(silent).toMatchObject({ retryable: true, message: expect.stringContaining('within 50 ms') })
    fake.misbehave(response => {
      response.writeHead(200)
      response.write('{"schema":')
      return true
    })
    expect((await failureOf(registry.learn(new Set([7])))).message).toContain('within 50 ms')
  })

  test('is not read to the end if its answer is endless', async () => {
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

  test('is not waited for once the call is aborted', async () => {
    const registry = open()
    const abort = new AbortController()
    fake.misbehave(() => true)
    const learning = failureOf(registry.learn(new Set([7]), abort.signal))
    await expect.poll(() => fake.calls).toHaveLength(1)
    abort.abort()
    expect((await learning).message).not.toContain('within')
    await failureOf(registry.learn(new Set([7]), abort.signal))
    expect(fake.calls).toHaveLength(1)
  })
})

test('an id that was missing is asked for again beside a new one: its schema may be registered by now', async () => {
  const registry = open({ missingMs: 600_000 })
  await registry.learn(new Set([7]))
  expect(registry.known(7)).toEqual({ reason: schemaMissing })
  fake.put(7, stored)
  await registry.learn(new Set([7, 8]))
  expect([7, 8].map(registry.known)).toEqual([told, { reason: schemaMissing }])
})

describe('the way to the registry', () => {
  const secret = 'pässwörd:with a colon'

  test('takes its credentials along, to this registry only, and shows them in no message', async () => {
    const registry = open({ user: 'reader', password: secret })
    const encoded = Buffer.from(`reader:${secret}`).toString('base64')
    const elsewhere = await startFakeSchemaRegistry()
    onTestFinished(elsewhere.close)
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

  test('is verified: a certificate is trusted by the authority that is given, and by no other', async context => {
    needs(context, openssl)
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-registry-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    const { ca, keyStore } = await makeCertificate(directory)
    const pem = await readFile(keyStore, 'utf8')
    const secure = await startFakeSchemaRegistry({ key: pem, cert: pem })
    onTestFinished(secure.close)
    secure.put(7, stored)
    const trusting = open({ url: secure.url, caCertificate: ca })
    await trusting.learn(new Set([7]))
    expect(trusting.known(7)).toEqual(told)
    const { ca: another } = await makeCertificate(directory)
    for (const caCertificate of [undefined, another]) {
      const { message } = await failureOf(open({ url: secure.url, caCertificate }).learn(new Set([7])))
      expect(message).toMatch(/did not answer: \w*(SELF_SIGNED|SIGNATURE|LEAF)/)
    }
  })
})
