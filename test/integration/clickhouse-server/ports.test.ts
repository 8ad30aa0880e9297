/**
 * Proves what the data teams' ports let strangers do: nothing. They cannot starve the program, which uses the same server; no bytes
 * and no way to disconnect end ClickHouse; without a sign-in only the query page and the ping are served; and no client can use
 * ClickHouse's own users. Without measures, this way of running ClickHouse would end on a wrong password in the native protocol, on
 * bytes of another protocol, and on a request that is cut off in its headers (services/clickhouse-server/terminal.ts).
 */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedTables } from '../../../services/embedded/tables.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { askClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { askNative, nativeHello, nativeQuery } from '../../support/clickhouse/native-protocol.ts'
import { whileTime } from '../../support/runner/while-time.ts'

// ClickHouse has places for 4,096.
const strangers = 4_600
const host = '127.0.0.1'
// Silent strangers are closed after 10 s, which would make place.
const answerMsMax = 9_000

let directory: TestDirectory
let opened: EmbeddedTables
let pid: number
let url: string

beforeAll(async () => {
  directory = makeTestDirectory()
  opened = await directory.open()
  pid = opened.clickHouse.pid()
  url = opened.door?.url ?? ''
})

/** Both ports are answered by the same process as before. */
afterEach(expectAlive)

afterAll(async () => {
  await opened.close()
  directory.remove()
})

describe('over HTTP, ClickHouse', () => {
  test.each([
    ...['/dashboard', '/merges', '/jemalloc', '/binary', '/schema', '/replicas_status', '/metrics', '/docs'],
    ...['/webterminal', '/js/uplot.js', '/js/lz-string.js', '/query', '/play/', '//dashboard'],
  ])('has no page %s', async path => {
    for (const method of ['GET', 'HEAD', 'POST'])
      for (const search of ['', '?user=analyst', '?query=SELECT+1&user=analyst'])
        expect((await fetch(`${url}${path}${search}`, { method })).status, method).toBe(404)
  })

  test('has its query page, says that it is alive, and answers queries', async () => {
    const page = await fetch(`${url}/play?user=analyst`)
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(await page.text()).toContain('</html>')
    const answers = await Promise.all(
      ['/ping', '/?query=SELECT+1&user=analyst'].map(path => fetch(`${url}${path}`)),
    )
    expect(await Promise.all(answers.map(answer => answer.text()))).toEqual(['Ok.\n', '1\n'])
  })
})

describe('of a page from elsewhere in a browser on this machine, over HTTP,', () => {
  test('no answer can be read by its script, whatever it asks for', async () => {
    for (const method of ['GET', 'POST', 'OPTIONS'])
      for (const path of ['/', '/play', '/ping']) {
        const search = 'user=analyst&add_http_cors_header=1&query=SELECT+1'
        const answer = await fetch(`${url}${path}?${search}`, {
          method,
          headers: { origin: 'https://a.example' },
        })
        expect([...answer.headers.keys()].filter(name => name.startsWith('access-control-allow'))).toEqual([])
      }
  })

  test.each(['cross-site', 'same-site'])('no query is run if the browser calls it %s', async site => {
    expect(await statusOf('/?user=analyst&query=SELECT+1', { 'sec-fetch-site': site })).toBe(404)
  })

  test.each([
    'rebind.example',
    'rebind.example:8123',
    '127.0.0.1.example',
    'localhost.example',
    'a@localhost',
  ])('no query is run, and no page shown, under the name %s that leads here', async name => {
    for (const path of ['/?user=analyst&query=SELECT+1', '/play?user=analyst'])
      expect(await statusOf(path, { host: name })).toBe(404)
  })

  test.each(['localhost', '127.0.0.1:1', '[::1]:8123', '10.0.0.1', 'host.docker.internal:8123', ''])(
    'but under %j a client, a link to ClickHouse’s own page, and this page are answered',
    async name => {
      expect(await statusOf('/play', { host: name, 'sec-fetch-site': 'cross-site' })).toBe(200)
      for (const site of ['same-origin', 'none'])
        expect(await statusOf('/?user=analyst&query=SELECT+1', { host: name, 'sec-fetch-site': site })).toBe(
          200,
        )
    },
  )
})

describe('the session’s user, which has no password,', () => {
  const refused = [
    'SELECT 1',
    "SELECT file('/etc/passwd')",
    'SYSTEM STOP LISTEN HTTP',
    'SET max_sessions_for_user = 100',
  ]

  test('may do nothing, over both protocols, with any parameter, and with many requests', async () => {
    const nobody = { url: opened.clickHouse.url, user: 'default', password: '' }
    const native = { port: opened.clickHouse.nativePort ?? 0, user: 'default', password: '' }
    for (const query of refused)
      await expect(askNative(native, query)).rejects.toThrow('overflown session count')
    for (const parameter of [
      'session_id=mine',
      'max_sessions_for_user=100',
      'profile=program',
      'quota_key=mine',
    ]) {
      const response = await fetch(`${nobody.url}/?user=default&query=SELECT+1&${parameter}`)
      expect(response.headers.get('x-clickhouse-exception-code')).toMatch(/^(700|452)$/)
      expect(response.status).not.toBe(200)
    }
    for (let round = 0; round < 20; round++) {
      const asked = Array.from({ length: 50 }, (_, n) =>
        askClickHouse(nobody, refused[n % refused.length] ?? ''),
      )
      for (const answer of await Promise.allSettled(asked))
        expect(String((answer as PromiseRejectedResult).reason)).toContain('USER_SESSION_LIMIT_EXCEEDED')
    }
  })

  test.each([
    ['pledgeview', ''],
    ['pledgeview', 'pledgeview'],
    ['pledgeview_definer', ''],
    ['pledgeview_definer', '0'.repeat(64)],
    ['analyst', 'wrong'],
    ['nobody', ''],
  ])('is the only one: %j with password %j is not let in', async (user, password) => {
    const asked = askClickHouse({ url: opened.clickHouse.url, user, password }, 'SELECT 1')
    await expect(asked).rejects.toThrow('AUTHENTICATION_FAILED')
    const native = askNative({ port: nativePort(), user, password }, 'SELECT 1')
    await expect(native).rejects.toMatchObject({ name: 'NativeError', code: 516 })
  })
})

describe('ClickHouse', () => {
  test('ends a connection that has not signed in and says nothing, over both protocols', async () => {
    const half: [port: number, bytes: string][] = [
      [httpPort(), ''],
      [httpPort(), 'GET / HT'],
      [nativePort(), ''],
      [nativePort(), '\0'],
    ]
    const begun = performance.now()
    await Promise.all(
      half.map(async ([to, bytes]) => {
        const socket = connect(to, '127.0.0.1').resume()
        socket.write(bytes)
        await once(socket, 'close')
      }),
    )
    // Ten seconds, on a machine that is not busy. ClickHouse itself has 30 and 300.
    expect(performance.now() - begun).toBeLessThan(25_000)
  })

  test('keeps running, whatever a client sends over both protocols, and however it disconnects', async () => {
    const post = 'POST /?user=analyst&query= HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nSELECT 1'
    const hello = nativeHello({ port: 0, user: 'analyst', password: '' })
    const wholes = fc.constantFrom(Buffer.from(post), Buffer.concat([hello, nativeQuery('SELECT 1')]))
    const changes = fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 3 })
    const sent = fc.tuple(wholes, changes, fc.nat(100)).map(([whole, changed, end]) => {
      const bytes = Buffer.from(whole)
      for (const [at, byte] of changed) bytes[at] = byte
      return bytes.toString('latin1', 0, end)
    })
    const known = [
      post.slice(0, 60),
      `${post}${post.slice(0, 40)}`,
      post.replace('Host: localhost', 'Content-Encoding: gzip'),
      'POST /?user=analyst HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nSELECT',
      'GET /?user=analyst&query=SELECT+*+FROM+numbers(1000000) HTTP/1.1\r\n\r\n',
      'GET /?query=SELECT+1 HTTP/1.1\r\nAuthorization: Negotiate !\r\n\r\n',
      // Two hellos, that of another server of a cluster, and an empty packet of each kind.
      hello.toString('latin1').repeat(2),
      nativeHello({ port: 0, user: ' INTERSERVER SECRET ', password: '' }).toString('latin1'),
      `${hello.toString('latin1')}\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a`,
      // A TLS hello, and bytes of no protocol.
      '\x16\x03\x01\0\xa5\x01\0\0\xa1\x03\x03',
      '\xff\0\xff\0\xff\0\r\n\r\n',
      // What never ends: a header, an address, headers, a name.
      `GET / HTTP/1.1\r\nX: ${'a'.repeat(2_000_000)}`,
      `GET /${'a'.repeat(2_000_000)}`,
      `GET / HTTP/1.1\r\n${'X: a\r\n'.repeat(100_000)}`,
      `\0${'\xff'.repeat(1_000_000)}`,
    ]
    const examples = known.flatMap((text): [() => number, string][] => [
      [httpPort, text],
      [nativePort, text],
    ])
    const property = async (portOf: () => number, text: string) => {
      for (const leave of waysToLeave) {
        // The moment at which the server notices the end differs between runs.
        for (let time = 0; time < 3; time++) await send(portOf(), Buffer.from(text, 'latin1'), leave)
        await expectAlive()
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(httpPort, nativePort), sent, whileTime(60_000, property)),
      { numRuns: 150, examples, endOnFailure: true },
    )
  })
})

describe('the data teams’ ports', () => {
  test.each([
    ['the HTTP port', httpPort],
    ['the native port', nativePort],
  ])(
    'silent connections of strangers to %s leave the program its places, and analysts get in',
    async (_, portOf) => {
      const silent: Socket[] = []
      for (let begun = 0; begun < strangers; begun += 100) {
        const some = Array.from({ length: 100 }, () =>
          connect(portOf(), host)
            .on('error', () => {})
            .resume(),
        )
        silent.push(...some)
        await Promise.all(some.map(socket => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
      }
      for (let time = 0; time < 5; time++) {
        const asked = performance.now()
        expect(await opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
        expect(performance.now() - asked).toBeLessThan(answerMsMax)
      }
      await expect.poll(() => askHttp().catch(String)).toBe('1\n')
      await expect.poll(() => askAnalyst('SELECT 1').catch(String)).toEqual(['1'])
      for (const socket of silent) socket.destroy()
    },
  )

  test('a client that does not read its answer holds ClickHouse up, and takes no memory here', async () => {
    const bytes = 300_000_000
    const query = `SELECT repeat('a', 999) FROM numbers(${bytes / 1000})`
    const before = process.memoryUsage.rss()
    const socket = connect({ port: httpPort(), host })
    socket.write(
      `GET /?user=analyst&query=${encodeURIComponent(query)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    )
    await once(socket, 'readable')
    await expect
      .poll(async () => {
        const [row] = await opened.tables.rows<{ n: number }>({
          query: "SELECT toInt32(count()) AS n FROM system.processes WHERE user = 'analyst' AND elapsed > 1",
        })
        return row?.n
      })
      .toBe(1)
    expect(process.memoryUsage.rss() - before).toBeLessThan(bytes / 4)
    let read = 0
    for await (const chunk of socket) read += (chunk as Buffer).length
    expect(read).toBeGreaterThan(bytes)
  })

  test('they stay open when ClickHouse is restarted, and lead to the new process', async () => {
    await opened.clickHouse.kill()
    await expect.poll(() => askHttp().catch(String), { timeout: 60_000 }).toBe('1\n')
    await expect.poll(() => askAnalyst('SELECT 1').catch(String)).toEqual(['1'])
    await expect.poll(() => opened.clickHouse.pid()).not.toBe(pid)
    await expect.poll(() => opened.clickHouse.outage()).toBeUndefined()
    pid = opened.clickHouse.pid()
  })
})

/** `fetch` sets these headers itself. */
async function statusOf(path: string, headers: Record<string, string>): Promise<number | undefined> {
  const [response] = (await once(get(`${url}${path}`, { headers }), 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}

function httpPort(): number {
  return Number(new URL(url).port)
}

function nativePort(): number {
  return opened.door?.nativePort ?? 0
}

async function askHttp(): Promise<string> {
  return (await askAsAnalyst(url, 'SELECT 1')).text
}

function askAnalyst(query: string): Promise<string[]> {
  return askNative({ port: nativePort(), user: 'analyst', password: '' }, query)
}

async function expectAlive(): Promise<void> {
  expect(await askAnalyst('SELECT 1')).toEqual(['1'])
  expect(await opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
  expect(opened.clickHouse.outage()).toBeUndefined()
  expect(opened.clickHouse.pid()).toBe(pid)
}

const waysToLeave: ((socket: Socket) => unknown)[] = [
  socket => socket.end(),
  socket => socket.destroy(),
  socket => socket.resetAndDestroy(),
]

/** Resolves when the connection is closed. */
async function send(port: number, bytes: Buffer, leave: (socket: Socket) => unknown): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port })
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.on('error', () => {}).resume()
  await once(socket, 'connect')
  await new Promise(resolve => socket.write(bytes, resolve))
  leave(socket)
  await closed
}
