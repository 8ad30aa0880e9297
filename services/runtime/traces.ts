/**
 * Traces for OpenTelemetry: spans of a batch (collect, decode, insert), a fold, a request, and of their statements. A request continues
 * the trace of its `traceparent` header, and a batch links to those of its records.
 *
 * Without `OTEL_EXPORTER_OTLP_ENDPOINT` (or `..._TRACES_ENDPOINT`) nothing is loaded, and each function here only does its work. The
 * SDK is no part of the program: an operator who wants traces installs it. A span has names, counts and times, and no id of an
 * entity, no text of a statement and no address that a client sent.
 *
 * How it fails: a start is refused if the SDK cannot be loaded. If the collector does not answer, spans are lost, and nothing else.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { ClickHouseTracer } from '@clickhouse/client'
import type { Attributes, Context, Link, Span, TextMapGetter, Tracer } from '@opentelemetry/api'
import type { LogRecord } from '../log/port.ts'
import { messageOf } from './message-of.ts'

interface Loaded {
  api: typeof import('@opentelemetry/api')
  tracer: Tracer
}

/** What is kept of a batch until it is written. Times are Unix ms. */
export interface BatchTrace {
  startedAt: number
  decoded: [begin: number, end: number][]
  collectedAt: number
  links: Map<string, Link>
}

// OpenTelemetry's own bound.
const linksMax = 128

// One for the process, like OpenTelemetry's own API.
let loaded: Loaded | undefined
const requests = new WeakMap<ServerResponse, Span>()

/**
 * Loads the SDK if the environment names a collector. The exporter itself reads the other `OTEL_EXPORTER_OTLP_...` variables. Resolves
 * with what sends the last spans. Throws if a package cannot be loaded.
 */
export async function openTraces(service: string): Promise<() => Promise<void>> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own } = process.env
  if (!(all || own) || process.env.OTEL_SDK_DISABLED === 'true') return async () => {}
  const asking = `OTEL_EXPORTER_OTLP_${own ? 'TRACES_' : ''}ENDPOINT asks for traces`
  const sdk = await loadSdk('sdk-trace', asking)
  const hooks = await loadSdk('context-async-hooks', asking)
  const { OTLPTraceExporter } = await loadSdk('exporter-trace-otlp-http', asking)
  const { W3CTraceContextPropagator } = await loadSdk('core', asking)
  const { resourceFromAttributes } = await loadSdk('resources', asking)
  const api = await import('@opentelemetry/api')
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': process.env.OTEL_SERVICE_NAME ?? `pledgeview-${service}`,
    }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  api.context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable())
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  loaded = { api, tracer: provider.getTracer('pledgeview') }
  return async () => {
    loaded = undefined
    // Without the collector the last spans are lost. That is no failure of the process.
    await provider.shutdown().catch(() => {})
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the package, and so its types, are there only if an operator has installed it.
async function loadSdk(name: string, asking: string): Promise<any> {
  try {
    return await import(`@opentelemetry/${name}`)
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
    const fault = isMissing
      ? 'their packages are not installed'
      : `@opentelemetry/${name} cannot be loaded (${messageOf(cause)}). Install the packages again`
    throw new Error(
      `${asking}, and ${fault}: npm install --no-save ` +
        '@opentelemetry/sdk-trace @opentelemetry/context-async-hooks @opentelemetry/exporter-trace-otlp-http',
      { cause },
    )
  }
}

/** Does the work in a span, below the span in which it is called. */
export function inSpan<T>(name: string, work: () => Promise<T>, attributes: Attributes = {}): Promise<T> {
  return loaded ? ended(loaded, loaded.tracer.startSpan(name, { attributes }), work) : work()
}

async function ended<T>({ api }: Loaded, span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await api.context.with(api.trace.setSpan(api.context.active(), span), work)
  } catch (error) {
    // No message: it may quote what a statement or a record said.
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: (error as Error).name })
    throw error
  } finally {
    span.end()
  }
}

/** For ClickHouse's client: only statements of a batch, a fold or a request have spans, not those that look for changes. */
export function statementTracer(): ClickHouseTracer | undefined {
  if (!loaded) return undefined
  const { api, tracer } = loaded
  const none = api.trace.wrapSpanContext(api.INVALID_SPAN_CONTEXT)
  return {
    startActiveSpan: (name, options, work) =>
      api.trace.getActiveSpan() ? tracer.startActiveSpan(name, options, work) : work(none),
  }
}

/** For a batch whose first records have come; `undefined` without traces. */
export function beginBatch(): BatchTrace | undefined {
  if (!loaded) return undefined
  const now = Date.now()
  return { startedAt: now, decoded: [], collectedAt: now, links: new Map() }
}

const recordHeaders: TextMapGetter<LogRecord['headers']> = {
  keys: (headers = []) => headers.map(([name]) => name),
  get(headers, wanted) {
    const [, value] = headers?.findLast(([name]) => name === wanted) ?? []
    return value && Buffer.from(value).toString()
  },
}

/** Decodes records of the batch, and notes the time and the traces that they belong to. */
export function decodeTraced(
  batch: BatchTrace | undefined,
  records: readonly LogRecord[],
  decode: () => void,
): void {
  const begin = batch && Date.now()
  decode()
  if (!batch || !begin || !loaded) return
  batch.collectedAt = Date.now()
  if (records.length > 0) batch.decoded.push([begin, batch.collectedAt])
  const { propagation, ROOT_CONTEXT, trace } = loaded.api
  for (const { headers } of records) {
    if (!headers || batch.links.size >= linksMax) continue
    const context = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, headers, recordHeaders))
    if (context) batch.links.set(context.spanId, { context })
  }
}

/** Writes a batch, as the last child of its span. */
export function inBatch(
  batch: BatchTrace | undefined,
  attributes: Attributes,
  write: () => Promise<void>,
): Promise<void> {
  if (!batch || !loaded) return write()
  const { api, tracer } = loaded
  const { startedAt: startTime, decoded, collectedAt, links } = batch
  const span = tracer.startSpan(
    'batch',
    { startTime, attributes, links: [...links.values()] },
    api.ROOT_CONTEXT,
  )
  const child = (name: string, begin: number, end: number, parent: Context) => {
    const part = tracer.startSpan(name, { startTime: begin }, parent)
    part.end(end)
    return api.trace.setSpan(parent, part)
  }
  const collect = child('collect', startTime, collectedAt, api.trace.setSpan(api.ROOT_CONTEXT, span))
  for (const [begin, end] of decoded) child('decode', begin, end, collect)
  return ended(loaded, span, () => inSpan('insert', write))
}

/** Gives each request of a server a span, from its first listener to the end of its response. */
export function traceRequests(server: Server): void {
  if (!loaded) return
  const { api, tracer } = loaded
  const listeners = server.listeners('request') as RequestListener[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const parent = api.propagation.extract(api.ROOT_CONTEXT, request.headers)
    const span = tracer.startSpan('request', { kind: api.SpanKind.SERVER }, parent)
    requests.set(response, span)
    response.once('close', () => {
      span.setAttribute('http.response.status_code', response.statusCode)
      if (response.statusCode >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR })
      span.end()
    })
    api.context.with(api.trace.setSpan(parent, span), () => {
      for (const listener of listeners) listener(request, response)
    })
  })
}

/** Names the span of an answered request by its route. */
export function nameRequest(
  response: ServerResponse,
  { id, method, route }: { id: string; method: string; route: string },
): void {
  if (!loaded) return
  const attributes = { 'http.request.method': method, 'http.route': route, 'pledgeview.request.id': id }
  requests.get(response)?.updateName(`${method} ${route}`).setAttributes(attributes)
}
