/** What one address without credentials can take from others: connections and turns. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { startTestApp, type TestApp, type TestAppSettings } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import { connectRaw, type RawConnection, rawRequest } from '../../../support/query/raw-http.ts'
import { expectContract } from '../../../support/query/raw-http-contract.ts'
import { expectEveryPromise } from '../../../support/query/shape.ts'

const preflight = 'OPTIONS /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'
const anonymous = 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'

let app: TestApp
afterEach(() => app.close())

async function start(settings: Partial<TestAppSettings> = {}): Promise<void> {
  app = await startTestApp({ tables: fakeTables().tables, ...settings })
}

/** A request with a new valid key. */
const statsRequest = () => rawRequest('GET /api/v1/stats', app.issue())

async function connection(): Promise<RawConnection> {
  const opened = await connectRaw(app.port)
  onTestFinished(() => opened.close())
  return opened
}

/** Counts the requests that Node builds from now on, handled or not. */
function countRequests(): () => number {
  let count = 0
  const increment = () => void count++
  subscribe('http.server.request.start', increment)
  onTestFinished(() => void unsubscribe('http.server.request.start', increment))
  return () => count
}

async function exchange(on: RawConnection, request: string): Promise<number | undefined> {
  on.send(request)
  return (await on.next())?.status
}

describe('the connections of one address', () => {
  it('are bounded: a new one takes the place of the oldest without valid credentials', async () => {
    await start({ options: { PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: 3 } })
    const oldest = await connection()
    expect(await exchange(oldest, preflight)).toBe(204)
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    const third = await connection()
    expect(await exchange(third, preflight)).toBe(204)
    const fourth = await connection()
    expect(await exchange(fourth, statsRequest())).toBe(200)
    expect(await oldest.next()).toBeUndefined()
    expect(await exchange(member, preflight)).toBe(204)
    expect(await exchange(third, preflight)).toBe(204)
  })

  it('are refused if all of them have had valid credentials, until one of them ends', async () => {
    await start({ options: { PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: 2 } })
    const members = [await connection(), await connection()]
    for (const member of members) expect(await exchange(member, statsRequest())).toBe(200)
    const late = await connection()
    expect(await exchange(late, preflight)).toBeUndefined()
    members[0]?.close()
    await expect.poll(async () => exchange(await connection(), preflight)).toBe(204)
    expect(await exchange(members[1] as RawConnection, statsRequest())).toBe(200)
  })

  it('are not bounded if it is a trusted proxy, which carries many clients', async () => {
    await start({
      options: { PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: 1, PLEDGEVIEW_TRUST_PROXY: ['127.0.0.1'] },
    })
    const several = [await connection(), await connection(), await connection()]
    for (const one of several) expect(await exchange(one, preflight)).toBe(204)
    for (const one of several) expect(await exchange(one, preflight)).toBe(204)
  })
})

it.each([
  ['of one address', { strangersPerAddressMax: 2 }],
  ['of all addresses', { strangersMax: 2 }],
])(
  'the connections of strangers %s are bounded: a new one takes the place of the oldest',
  async (_, options) => {
    await start({ options })
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    const strangers = [await connection(), await connection()]
    for (const stranger of strangers) expect(await exchange(stranger, preflight)).toBe(204)
    const third = await connection()
    expect(await strangers[0]?.next()).toBeUndefined()
    expect(await exchange(third, preflight)).toBe(204)
    expect(await exchange(strangers[1] as RawConnection, preflight)).toBe(204)
    // The member becomes a stranger, the latest one.
    expect(await exchange(member, anonymous)).toBe(401)
    expect(await strangers[1]?.next()).toBeUndefined()
    expect(await exchange(member, statsRequest())).toBe(200)
    expect(await exchange(third, preflight)).toBe(204)
  },
)

describe('a connection without valid credentials', () => {
  it('is closed when it is idle, sooner than one that has had valid credentials', async () => {
    await start({ options: { strangerKeepAliveMs: 2_000, keepAliveTimeoutMs: 60_000 } })
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    const stranger = await connection()
    stranger.send(preflight)
    // It says how long it stays open, with a second to spare.
    expect(await stranger.next()).toMatchObject({ status: 204, headers: { 'keep-alive': 'timeout=1' } })
    expect(await stranger.next()).toBeUndefined()
    expect(await exchange(member, statsRequest())).toBe(200)
  })

  it.each([
    ['a preflight', preflight, 204],
    ['a request without credentials', anonymous, 401],
    ['a request to a public page', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['wrong credentials', 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nX-API-Key: nobody\r\n\r\n', 401],
  ])(
    'ends with the answer to %s, also behind one with valid credentials, if more was sent ahead, which is not handled',
    async (_, request, status) => {
      await start()
      for (const before of ['', statsRequest()]) {
        const built = countRequests()
        const stranger = await connection()
        stranger.send(before + request.repeat(1_000))
        if (before !== '') expect((await stranger.next())?.status).toBe(200)
        const answer = await stranger.next()
        expect({ status: answer?.status, connection: answer?.headers.connection }).toEqual({
          status,
          connection: 'close',
        })
        expect(await stranger.next()).toBeUndefined()
        expect(built()).toBe(before === '' ? 1 : 2)
      }
    },
  )

  it('ends with the 429 of its address, and has one line of the log for each of its requests', async () => {
    const log: string[] = []
    await start({ addressLimit: 5, log })
    const stranger = await connection()
    for (let asked = 0; asked < 6; asked++) {
      stranger.send(anonymous)
      const answer = await stranger.next()
      if (answer === undefined) throw new Error('no answer')
      expectContract(answer, asked < 5 ? '401 unauthorized' : '429 rate_limited')
      expectEveryPromise(answer)
      expect(answer.headers.connection).toBe(asked < 5 ? 'keep-alive' : 'close')
    }
    expect(await stranger.next()).toBeUndefined()
    // The valid key behind the same address has its connections and its limit.
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    expect(log.filter(line => line.includes('"msg":"request"'))).toHaveLength(7)
  })
})

it('a connection with a valid key has each request answered that it sends ahead, one per turn of the event loop', async () => {
  let isOver = false
  let inTurn = 0
  let most = 0
  const onRequestDone = () => {
    most = Math.max(most, ++inTurn)
  }
  const countTurns = () => {
    inTurn = 0
    if (!isOver) setImmediate(countTurns)
  }
  onTestFinished(() => {
    isOver = true
  })
  await start({ keyLimit: 2_000, overrides: { onRequestDone } })
  countTurns()
  const flood = await connection()
  flood.send(statsRequest().repeat(1_000))
  for (let answered = 0; answered < 1_000; answered++) expect((await flood.next())?.status).toBe(200)
  expect(most).toBeLessThanOrEqual(2)
  expect(await exchange(flood, statsRequest())).toBe(200)
})
