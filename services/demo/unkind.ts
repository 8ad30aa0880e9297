/**
 * The demo platform, unkind on purpose (`npm start -- --unkind`): for people who want to know whether their copy stays right. Campaigns leave, come back
 * and change in bursts, events are repeated late, and a second address of the API is slow, refuses requests and loses connections.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ErrorCode, errorBody, errors } from '../../contracts/api/errors.ts'
import type { CampaignState, StateEvent } from '../../contracts/events/event.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { sampleEvents } from './sample.ts'

// Of the seconds, and then of the events of a burst.
const quietShare = 0.9
const leaveShare = 0.3
const repeatShare = 0.2
const burstMax = 20
const repeatableMax = 200

/** `next` returns what happens now. Versions of a campaign grow, but for events that are repeated. `now`: Unix milliseconds. */
export function unkindEvents({ endMs, random }: { endMs: number; random: () => number }) {
  const campaigns = new Map<string, CampaignState>()
  for (const { type, data } of sampleEvents(endMs)) {
    if (data.changed_at > endMs) break
    if (type === 'campaign') campaigns.set(data.campaign_id, data as CampaignState)
  }
  const originals = [...campaigns.values()].filter(({ status }) => status !== 'DRAFT')
  const away = new Set<string>()
  let told: StateEvent[] = []
  let version = 0

  function happening(now: number): StateEvent | undefined {
    if (random() < repeatShare) return told[Math.floor(random() * told.length)]
    const original = originals[Math.floor(random() * originals.length)]
    if (original === undefined) return undefined
    version = Math.max(version, now * 1_000) + 1
    const data: CampaignState = { ...original, version, changed_at: now }
    if (away.delete(original.campaign_id)) data.title = `${original.title}, again`
    else if (random() >= leaveShare) data.title = `${original.title}, ${version % 1_000}`
    else {
      away.add(original.campaign_id)
      data.status = 'SUSPENDED'
    }
    const event: StateEvent = { type: 'campaign', data }
    told = [...told, event].slice(-repeatableMax)
    return event
  }

  return {
    next(now: number): StateEvent[] {
      if (random() < quietShare) return []
      const count = Math.ceil(random() * burstMax)
      return Array.from({ length: count }, () => happening(now)).filter(event => event !== undefined)
    },
  }
}

const troubles = ['rate_limited', 'internal_error', 'lost'] as const
const troubleShare = 0.15
const waitMsMax = 1_000
const passedHeaders = ['authorization', 'x-api-key', 'x-api-secret', 'if-none-match']
// Of a body that was decoded and is sent whole.
const droppedHeaders = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'keep-alive',
  'transfer-encoding',
])

/** Opens an address of the API at `apiUrl` that makes trouble, until the signal aborts. It listens on the loopback, at a free port. */
export async function openUnkindDoor(
  apiUrl: string,
  { random, sleep }: Pick<Runtime, 'random' | 'sleep'>,
  signal: AbortSignal,
): Promise<string> {
  const { origin, pathname } = new URL(apiUrl)

  async function answerTo({ url = '', method = 'GET', headers }: IncomingMessage): Promise<Response> {
    const target = URL.parse(url, origin)
    if (target?.origin !== origin) return refusal('not_found')
    const passed = passedHeaders.map(name => [name, headers[name]]).filter(([, value]) => value !== undefined)
    return fetch(target, { method, headers: Object.fromEntries(passed) })
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await sleep(random() * waitMsMax)
    const trouble = random() < troubleShare ? troubles[Math.floor(random() * troubles.length)] : undefined
    if (trouble === 'lost') return void response.destroy()
    const given = trouble === undefined ? await answerTo(request) : refusal(trouble)
    const body = Buffer.from(await given.arrayBuffer())
    const headers = [...given.headers].filter(([name]) => !droppedHeaders.has(name))
    response.writeHead(given.status, headers.flat())
    response.end(body)
  }

  const server = createServer((request, response) => {
    // The service is closing.
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  signal.addEventListener('abort', () => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`
}

function refusal(code: ErrorCode): Response {
  return Response.json(errorBody(code), { status: errors[code].status, headers: { 'retry-after': '1' } })
}
