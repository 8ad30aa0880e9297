/** What one address without credentials can take from others: connections, turns and log lines. */
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { keyHeaders, startTestApp, type TestApp, type TestAppSettings } from '../../../support/query-app.ts'
import { fakeTables } from '../../../support/query-fake-tables.ts'
import { expectEveryPromise } from '../../../support/query-shape.ts'
import { connectRaw, type RawConnection } from '../../../support/raw-http.ts'
import { expectContract } from '../../../support/raw-http-contract.ts'

const preflight = 'OPTIONS /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'
const anonymous = 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'

let app: TestApp
afterEach(() => app.close())

async function start(settings: Partial<TestAppSettings> = {}): Promise<void> {
  app = await startTestApp({ tables: fakeTables().tables, ...settings })
}

/** A request with a new valid key. */
function statsRequest(): string {
  const headers = Object.entries(keyHeaders(app.issue())).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n${headers.join('')}\r\n`
}

async function connection(): Promise<RawConnection> {
  const opened = await connectRaw(app.port)
  onTestFinished(() => opened.close())
  return opened
}

async function exchange(on: RawConnection, request: string): Promise<number | undefined> {
  on.send(request)
  return (await on.next())?.status
}

describe('the connections of one address', () => {
  it('are bounded: a new one takes the place of the oldest without valid credentials', async () => {
    await start({ options: { connectionsPerAddressMax: 3 } })
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
    await start({ options: { connectionsPerAddressMax: 2 } })
    const members = [await connection(), await connection()]
    for (const member of members) expect(await exchange(member, statsRequest())).toBe(200)
    const late = await connection()
    expect(await exchange(late, preflight)).toBeUndefined()
    members[0]?.close()
    await expect.poll(async () => exchange(await connection(), preflight)).toBe(204)
    expect(await exchange(members[1] as RawConnection, statsRequest())).toBe(200)
  })

  it('are not bounded if it is a trusted proxy, which carries many clients', async () => {
    await start({ options: { connectionsPerAddressMax: 1, trustProxy: ['127.0.0.1'] } })
    const several = [await connection(), await connection(), await connection()]
    for (const one of several) expect(await exchange(one, preflight)).toBe(204)
    for (const one of several) expect(await exchange(one, preflight)).toBe(204)
  })
})

describe('a connection without valid credentials', () => {
  const brief = { strangerKeepAliveMs: 100, keepAliveTimeoutMs: 60_000 }

  it('is closed when it is idle, sooner than one that has had valid credentials', async () => {
    await start({ options: brief })
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    const stranger = await connection()
    expect(await exchange(stranger, preflight)).toBe(204)
    expect(await stranger.next()).toBeUndefined()
    expect(await exchange(member, statsRequest())).toBe(200)
  })

  it('says how long it stays open, with a second to spare', async () => {
    await start({ options: { strangerKeepAliveMs: 5_000 } })
    const stranger = await connection()
    stranger.send(preflight)
    expect((await stranger.next())?.headers).toMatchObject({
      connection: 'keep-alive',
      'keep-alive': 'timeout=4',
    })
  })

  it('ends after a number of requests, and says so in the last answer', async () => {
    await start({ options: { strangerRequestsMax: 3 } })
    const stranger = await connection()
    stranger.send(preflight.repeat(10))
    const answers = [await stranger.next(), await stranger.next(), await stranger.next()]
    expect(answers.map(answer => answer?.headers.connection)).toEqual(['keep-alive', 'keep-alive', 'close'])
    expect(await stranger.next()).toBeUndefined()
  })

  it('makes no work of what is sent ahead beyond that number', async () => {
    let requests = 0
    const newRequestId = () => `request-${++requests}`
    await start({ options: { strangerRequestsMax: 3 }, overrides: { newRequestId } })
    const stranger = await connection()
    stranger.send(preflight.repeat(1_000))
    while (await stranger.next()) {}
    expect(requests).toBe(3)
  })

  it('gets an answer to each request that it sent ahead if its key is valid, also beyond that number', async () => {
    await start({ options: { strangerRequestsMax: 100 } })
    const member = await connection()
    member.send(statsRequest().repeat(110))
    for (let answered = 0; answered < 110; answered++) expect((await member.next())?.status).toBe(200)
    expect(await exchange(member, statsRequest())).toBe(200)
  })

  it('ends with the 429 of its address, and what it sent ahead is not handled', async () => {
    const log: string[] = []
    await start({ addressLimit: 5, log })
    const stranger = await connection()
    stranger.send(anonymous.repeat(500))
    const statuses: number[] = []
    for (let answer = await stranger.next(); answer; answer = await stranger.next()) {
      statuses.push(answer.status)
      expectContract(answer, answer.status === 401 ? '401 unauthorized' : '429 rate_limited')
      expectEveryPromise(answer)
      expect(answer.headers.connection).toBe(answer.status === 429 ? 'close' : 'keep-alive')
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    // The valid key behind the same address has its connections and its limit.
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    expect(log.filter(line => line.includes('"msg":"request"'))).toHaveLength(7)
  })

  it('stays open after a 429 of the address if it has had valid credentials', async () => {
    await start({ addressLimit: 1 })
    const member = await connection()
    expect(await exchange(member, statsRequest())).toBe(200)
    expect(await exchange(member, anonymous)).toBe(401)
    expect(await exchange(member, anonymous)).toBe(429)
    expect(await exchange(member, statsRequest())).toBe(200)
  })

  it('has one of its requests handled per turn of the event loop, however many it sends ahead', async () => {
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
    await start({ options: { strangerRequestsMax: 100_000 }, overrides: { onRequestDone } })
    countTurns()
    const flood = await connection()
    flood.send(preflight.repeat(1_000))
    for (let answered = 0; answered < 1_000; answered++) expect((await flood.next())?.status).toBe(204)
    expect(most).toBeLessThanOrEqual(2)
  })
})

describe('the log', () => {
  const linesOf = (log: readonly string[]) =>
    log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request')

  it('has a bounded number of lines a second of requests without a valid key, and the number that it left out', async () => {
    const log: string[] = []
    let time = 0
    await start({ log, addressLimit: 1, overrides: { monotonicNow: () => time } })
    for (let asked = 0; asked < 60; asked++) expect((await app.get('/stats')).status).not.toBe(200)
    await expect.poll(() => linesOf(log)).toHaveLength(20)
    expect(linesOf(log).every(({ omitted }) => omitted === undefined)).toBe(true)
    // A valid key's requests have their lines all the time.
    const valid = app.issue()
    for (let asked = 0; asked < 30; asked++) expect((await app.get('/stats', valid)).status).toBe(200)
    await expect.poll(() => linesOf(log)).toHaveLength(50)
    time += 1_000
    expect((await app.get('/stats')).status).toBe(429)
    await expect.poll(() => linesOf(log)).toHaveLength(51)
    expect(linesOf(log).at(-1)).toMatchObject({ status: 429, omitted: 40 })
  })

  it('has as few lines of a key that goes on beyond its limit', async () => {
    const log: string[] = []
    await start({ log, keyLimit: 2, overrides: { monotonicNow: () => 0 } })
    const valid = app.issue()
    for (let asked = 0; asked < 42; asked++) await app.get('/stats', valid)
    await expect.poll(() => linesOf(log)).toHaveLength(22)
  })
})
