/**
 * Proves that no bytes from a client end ClickHouse’s server, and that no way to disconnect does. Without measures, this way of
 * running ClickHouse would end on a wrong password in the native protocol, on bytes of another protocol, and on a request that
 * is cut off in its headers (services/clickhouse-server/terminal.ts).
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative, nativeHello } from '../../support/native-protocol.ts'

describe('ClickHouse’s server', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables
  let pid: number

  beforeAll(async () => {
    directory = makeTestDirectory()
    opened = await directory.open()
    pid = opened.clickHouse.pid()
  })

  afterAll(async () => {
    await opened.close()
    directory.remove()
  })

  test('answers in the native protocol, including errors', async () => {
    expect(await askAnalyst('SELECT number FROM numbers(100000)')).toHaveLength(100_000)
    const { user, password } = opened.clickHouse
    expect(await askNative({ port: port(), user, password }, 'SELECT currentUser()')).toEqual([user])
    await expect(askAnalyst('SELECT throwIf(number = 70000) FROM numbers(100000)')).rejects.toMatchObject({
      code: 395,
    })
    await expect(askAnalyst('SELEC 1')).rejects.toMatchObject({ code: 62 })
    await expectAlive()
  })

  test('ends a connection that has not signed in and says nothing, over both protocols', async () => {
    const http = httpPort()
    const half: [port: number, bytes: string][] = [
      [http, ''],
      [http, 'GET / HT'],
      [port(), ''],
      [port(), '\0'],
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
    await expectAlive()
  })

  test.each([
    ['a wrong password', { user: 'analyst', password: 'wrong' }, 516],
    ['an unknown user', { user: 'nobody', password: '' }, 516],
    ['no user', { user: '', password: '' }, 101],
    ['an unknown database', { user: 'analyst', password: '', database: 'nowhere' }, 81],
  ])('refuses %s in the native protocol, and keeps running', async (_, who, code) => {
    await expect(askNative({ port: port(), ...who }, 'SELECT 1')).rejects.toMatchObject({
      name: 'NativeError',
      code,
    })
    await expectAlive()
  })

  const hello = nativeHello({ port: 0, user: 'analyst', password: '' })
  const halfAQuery = Buffer.from([1, 0, 0, 2, 0, 100, 83, 69, 76])
  const long = Buffer.from([0, 255, 255, 255, 255, 255, 255, 255, 1])
  const sent: [string, Buffer[]][] = [
    ['nothing', []],
    ['an HTTP request', [Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')]],
    ['a TLS hello', [Buffer.from('16030100a5010000a10303', 'hex')]],
    ['bytes of no protocol', [Buffer.from('ff00ff00ff00', 'hex')]],
    ['half a hello', [hello.subarray(0, 9)]],
    ['a hello with a name that never ends', [long]],
    ['a hello of a megabyte', [Buffer.concat([hello.subarray(0, 1), Buffer.alloc(1_000_000, 255)])]],
    ['a hello alone', [hello]],
    ['a hello of another server', [nativeHello({ port: 0, user: ' INTERSERVER SECRET ', password: '' })]],
    ['two hellos', [hello, hello]],
    ['a hello, byte by byte', [...hello].map(byte => Buffer.from([byte]))],
    ['a hello and bytes of no protocol', [hello, Buffer.from('63ffffffff', 'hex')]],
    ['a hello and half a query', [hello, halfAQuery]],
    ['a hello and an empty packet of each kind', [hello, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])]],
  ]

  test.each(sent)(
    'keeps running after %s in the native protocol, however the client disconnects',
    async (_, parts) => {
      for (const leave of waysToLeave) {
        await send(port(), parts, leave)
        await expectAlive()
      }
    },
  )

  const body = 'SELECT 1'
  const headers = `POST /?user=analyst&query= HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`
  const requests: [string, string][] = [
    ['one byte of a request', headers.slice(0, 1)],
    ['half a request line', headers.slice(0, 20)],
    ['half of the headers', headers.slice(0, 60)],
    ['headers without their end', headers.slice(0, -2)],
    ['headers without a body', headers],
    ['half a body', `${headers}${body.slice(0, 4)}`],
    ['a request whose answer is never read', `${headers}${body}`],
    ['a second request that is cut off', `${headers}${body}${headers.slice(0, 40)}`],
    ['a body with invalid chunks', `${chunked}zz\r\nSELECT`],
    ['a body that is cut off in a chunk', `${chunked}100\r\nSELECT`],
    ['a body that is not compressed as it says', headers.replace('Host: a', 'Content-Encoding: gzip') + body],
    ['an answer that is cut off', 'GET /?user=analyst&query=SELECT+*+FROM+numbers(1000000) HTTP/1.1\r\n\r\n'],
    ['bytes of no protocol', '\xff\x00\xff\x00\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100a5010000a10303', 'hex').toString('latin1')],
    ['a header that never ends', `GET / HTTP/1.1\r\nX: ${'a'.repeat(2_000_000)}`],
    ['an excessive number of headers', `GET / HTTP/1.1\r\n${'X: a\r\n'.repeat(100_000)}`],
    ['an address that never ends', `GET /${'a'.repeat(2_000_000)}`],
    ['invalid credentials', 'GET /?query=SELECT+1 HTTP/1.1\r\nAuthorization: Negotiate !\r\n\r\n'],
  ]

  test.each(requests)(
    'keeps running after %s over HTTP, however the client disconnects',
    async (_, request) => {
      for (const leave of waysToLeave) {
        // The moment at which the server notices the end differs between runs.
        for (let time = 0; time < 5; time++) {
          await send(httpPort(), [Buffer.from(request, 'latin1')], leave)
        }
        await expectAlive()
      }
    },
  )

  test('a silent client does not block other clients', async () => {
    const silent = Array.from({ length: 50 }, () => connect({ host: '127.0.0.1', port: port() }))
    await Promise.all(silent.map(socket => once(socket, 'connect')))
    expect(await askAnalyst('SELECT 1')).toEqual(['1'])
    for (const socket of silent) socket.destroy()
  })

  function httpPort(): number {
    return Number(new URL(opened.door?.url ?? '').port)
  }

  function port(): number {
    return opened.door?.nativePort ?? 0
  }

  function askAnalyst(query: string): Promise<string[]> {
    return askNative({ port: port(), user: 'analyst', password: '' }, query)
  }

  /** Both ports are answered by the same process as before. */
  async function expectAlive(): Promise<void> {
    expect(await askAnalyst('SELECT 1')).toEqual(['1'])
    expect(await opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
    expect(opened.clickHouse.outage()).toBeUndefined()
    expect(opened.clickHouse.pid()).toBe(pid)
  }
})

const waysToLeave: ((socket: Socket) => unknown)[] = [
  socket => socket.end(),
  socket => socket.destroy(),
  socket => socket.resetAndDestroy(),
]
const chunked = 'POST /?user=analyst HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'

/** Resolves when the connection is closed. */
async function send(
  port: number,
  parts: readonly Buffer[],
  leave: (socket: Socket) => unknown,
): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port })
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.on('error', () => {}).resume()
  await once(socket, 'connect')
  for (const part of parts) {
    if (!socket.writable) break
    await new Promise(resolve => socket.write(part, resolve))
  }
  leave(socket)
  await closed
}
