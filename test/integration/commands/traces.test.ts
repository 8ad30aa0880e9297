/** Traces, as a collector gets them from the SDK: of the program itself, and of records with a `traceparent`. Without a collector, nothing is loaded. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import type { Header, LogRecord } from '../../../services/log/port.ts'
import {
  beginBatch,
  decodeTraced,
  inBatch,
  openTraces,
  statementTracer,
} from '../../../services/runtime/traces.ts'
import { makeDataDirectory, runCli, startServiceProcess } from '../../support/deployment/service-process.ts'
import { campaignEvent, newRecordOf } from '../../support/events/sample-events.ts'
import { needs } from '../../support/runner/requirements.ts'

interface ReceivedSpan {
  service: string
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes: { key: string; value: object }[]
  links?: { traceId: string }[]
}

const module = new URL('../../../services/runtime/traces.ts', import.meta.url).href
const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`
const received: ReceivedSpan[] = []
let collector: Server
let endpoint: string
const sdk = {
  isMet: await import('@opentelemetry/sdk-trace' as string).then(
    () => true,
    () => false,
  ),
  reason: 'the SDK of OpenTelemetry is not installed',
}

beforeAll(async () => {
  collector = createServer(async (request, response) => {
    // biome-ignore lint/suspicious/noExplicitAny: OTLP's own form.
    const body = (await json(request)) as any
    for (const { resource, scopeSpans } of body.resourceSpans) {
      const service = resource.attributes.find(({ key }: { key: string }) => key === 'service.name').value
        .stringValue
      for (const { spans } of scopeSpans)
        received.push(...spans.map((span: object) => ({ service, ...span })))
    }
    response.setHeader('Content-Type', 'application/json').end('{}')
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
})
beforeEach(context => needs(context, sdk))
afterEach(() => void vi.unstubAllEnvs())
afterAll(() => void collector.close())

const named = (name: string) => received.filter(span => span.name === name)
const childrenOf = ({ spanId }: ReceivedSpan) =>
  received.filter(({ parentSpanId }) => parentSpanId === spanId)

test('a batch, a fold and a request reach the collector with their statements, and name no campaign and no key', async () => {
  const directory = makeDataDirectory()
  // They are sent when the service ends.
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '600000' }
  const service = await startServiceProcess(
    ['--no-demo', '--no-sql', '--data-dir', directory.path],
    environment,
  )
  try {
    const owner = ['--account', 'a', '--name', 'A', '--url', 'https://a.example', '--email', 'a@a.example']
    const issued = await runCli(['keys', 'issue', '--json', '--data-dir', directory.path, ...owner])
    const { key, secret } = JSON.parse(issued.stdout)
    const event = campaignEvent({ campaign_id: 'secret-campaign', slug: 'secret-slug' })
    const appended = await runCli(['events', 'append', '-', '--data-dir', directory.path], formatEvent(event))
    expect(appended).toMatchObject({ code: 0 })
    const headers = { 'X-API-Key': key, 'X-API-Secret': secret, traceparent }
    for (const path of ['/projects', '/projects/secret-slug'])
      await expect
        .poll(async () => (await fetch(service.apiUrl + path, { headers })).status, {
          timeout: 60_000,
          interval: 1_000,
        })
        .toBe(200)
  } finally {
    await service.stop('SIGTERM')
    directory.remove()
  }
  const [batch] = named('batch')
  expect(
    childrenOf(batch as ReceivedSpan)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(['collect', 'insert'])
  expect(named('decode').length).toBeGreaterThan(0)
  const withStatements = [...named('insert'), ...named('fold'), ...named('GET /api/v1/projects/:slug')]
  expect(new Set(withStatements.map(({ name }) => name)).size).toBe(3)
  for (const name of ['insert', 'fold', 'GET /api/v1/projects/:slug'])
    expect(
      named(name)
        .flatMap(childrenOf)
        .map(child => child.name),
    ).toContain('clickhouse.exec')
  expect(named('GET /api/v1/projects').every(span => span.traceId === traceId)).toBe(true)
  expect(received.every(({ service: name }) => name === 'pledgeview-start')).toBe(true)
  expect(JSON.stringify(received)).not.toMatch(/secret-|pv_live/)
})

test('a batch links to the traces of its records', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', endpoint)
  const close = await openTraces('test')
  const trace = beginBatch()
  const headersOf = (...values: string[]) => ({
    headers: values.map((value): Header => ['traceparent', Buffer.from(value)]),
  })
  const event = campaignEvent({ campaign_id: 'any' })
  const record: LogRecord = { ...newRecordOf(event), partition: 0, offset: 0, appendedAt: 0 }
  decodeTraced(
    trace,
    [record, { ...record, ...headersOf('?', traceparent) }, { ...record, ...headersOf('?') }],
    () => {},
  )
  const failed = inBatch(trace, {}, async () => {
    throw new TypeError('quotes a row')
  })
  await expect(failed).rejects.toThrow('quotes a row')
  await close()
  const batch = named('batch').find(({ service }) => service === 'pledgeview-test')
  expect(batch).toMatchObject({ links: [{ traceId }], status: { code: 2, message: 'TypeError' } })
  expect(statementTracer()).toBeUndefined()
})

test('a collector that is away loses spans and fails nothing', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://127.0.0.1:9')
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '300')
  const close = await openTraces('test')
  const written = vi.fn(async () => {})
  await inBatch(beginBatch(), {}, written)
  await close()
  expect(written).toHaveBeenCalledOnce()
})

test('without a collector no package of OpenTelemetry is loaded; with one, a package that cannot be loaded is named with the way on', async () => {
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => {
      if (name.includes('opentelemetry')) throw new Error('asked for ' + name)
      return next(name, context)
    } })
    const { openTraces, beginBatch } = await import('${module}')
    for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_')) delete process.env[name]
    await openTraces('test')
    console.log(beginBatch())
    process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT = 'x'
    console.log((await openTraces('test').catch(error => error)).message)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect(stdout).toMatch(
    /^undefined\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT asks for traces, and @opentelemetry\/sdk-trace cannot be loaded .*npm install --no-save /,
  )
})
