/** Whole copies: every public campaign of one moment, with texts and reward tiers, from the service or from a file. */
import type { ProjectDetail } from './bodies.ts'
import { ClientError } from './errors.ts'
import { momentIn, unexpected } from './pages.ts'
import type { Transport } from './transport.ts'

export interface WholeCopy {
  /** `as_of` of its manifest, ISO 8601: it has every change up to this moment. */
  asOf: string
  projects: AsyncIterable<ProjectDetail> | Iterable<ProjectDetail>
}

const path = '/exports/latest/campaigns.ndjson.gz'

/** Null: the service offers none. The campaigns are read while they are iterated. */
export async function openWholeCopy(
  transport: Transport,
  signal: AbortSignal | undefined,
): Promise<WholeCopy | null> {
  try {
    const { headers, body } = await transport.open(path, { signal })
    const asOf = headers.get('x-data-as-of') ?? ''
    try {
      momentIn(asOf, 'a whole copy without a valid X-Data-As-Of')
    } catch (error) {
      // Nobody reads it, so its connection would stay open.
      void body.cancel().catch(() => undefined)
      throw error
    }
    return { asOf, projects: readWholeCopy(body) }
  } catch (error) {
    if (error instanceof ClientError && error.code === 'not_found') return null
    throw error
  }
}

/** The campaigns of `campaigns.ndjson.gz`. Throws `ClientError` if it breaks off: gzip has its length and a checksum at its end. */
export async function* readWholeCopy(
  gzipped: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<ProjectDetail, void> {
  const reader = gzipped
    .pipeThrough(new DecompressionStream('gzip'))
    .pipeThrough(new TextDecoderStream())
    .getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value = '' } = await reader.read().catch(brokenOff)
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) yield campaignOf(line)
      if (done) break
    }
  } finally {
    // Whoever stops early leaves a connection open otherwise.
    void reader.cancel().catch(() => undefined)
  }
  if (rest !== '') throw unexpected('a copy whose last line does not end')
}

function campaignOf(line: string): ProjectDetail {
  try {
    return JSON.parse(line) as ProjectDetail
  } catch {
    throw unexpected('a copy with a line that is not JSON')
  }
}

function brokenOff(cause: unknown): never {
  throw new ClientError({ code: 'network_failure', message: 'the whole copy broke off', cause })
}
