import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  openServerTables,
  type ServerSettings,
} from '../../../../services/shared/tables/clickhouse-server.ts'
import { type TableInsert, type Tables, TablesError } from '../../../../services/shared/tables/port.ts'
import {
  answers,
  type Behaviour,
  cuts,
  cutsHalfway,
  exceptionText,
  fails,
  isSilent,
  type MisbehavingServer,
  startMisbehavingServer,
  stopsHalfway,
} from '../../../support/misbehaving-server.ts'

const user = 'pledgeview'
const password = 'a-password-of-its-own'
const insert: TableInsert = {
  table: 'model.pledge_ledger',
  columns: ['a', 'b'],
  format: 'TSV',
  body: '1\tmind@private.example\n',
}
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function open(url: string, settings: Partial<ServerSettings> = {}): Tables {
  const tables = openServerTables(
    {
      url,
      user,
      password,
      compression: false,
      requestMsMax: 5_000,
      connectionsMax: 4,
      idleConnectionMsMax: 1_000,
      ...settings,
    },
    { random: () => 0 },
  )
  closers.push(() => tables.close())
  return tables
}

async function against(
  behaviours: readonly [Behaviour, ...Behaviour[]],
  settings: Partial<ServerSettings> = {},
): Promise<{ server: MisbehavingServer; tables: Tables }> {
  const server = await startMisbehavingServer(behaviours)
  closers.push(() => server.close())
  return { server, tables: open(server.url, settings) }
}

async function failureOf(done: Promise<unknown>): Promise<TablesError> {
  const error = await done.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(error).toBeInstanceOf(TablesError)
  expect(everyTextOf(error)).not.toContain(password)
  expect(everyTextOf(error)).not.toContain('private.example')
  return error as TablesError
}

async function expectAbandoned(done: Promise<unknown>): Promise<void> {
  const error = await failureOf(done)
  expect(error).toMatchObject({ retryable: false, type: undefined })
  expect(error.message).toContain('no longer waits')
}

/** All that a log could print of an error: messages, stacks and the chain of causes. */
function everyTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.stack} ${JSON.stringify(error)} ${everyTextOf(error.cause)}`
}

describe('a request that got no whole answer', () => {
  const unknown: [string, Behaviour][] = [
    ['was cut', cuts],
    ['was cut in the middle of the answer', cutsHalfway],
    ['was cut in the middle of a chunk', cutsChunk],
    ['met silence', isSilent],
    ['met silence in the middle of the answer', stopsHalfway],
  ]

  test.each(unknown)(
    'that %s may be tried again, and nobody knows what became of it',
    async (_, behaviour) => {
      for (const send of [
        (tables: Tables) => tables.rows({ query: 'SELECT 1' }),
        (tables: Tables) => tables.run({ query: 'INSERT INTO a SELECT 1' }),
        (tables: Tables) => tables.insert(insert),
      ]) {
        const { tables } = await against([behaviour], { requestMsMax: 100 })
        expect(await failureOf(send(tables))).toMatchObject({ retryable: true, type: undefined })
      }
    },
  )

  test('that was compressed and cut may be tried again', async () => {
    const whole = gzipSync('{"n":1}\n'.repeat(100))
    const { tables } = await against(
      [response => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(whole.subarray(0, 20))],
      { compression: true },
    )
    expect(await failureOf(tables.rows({ query: 'SELECT n' }))).toMatchObject({ retryable: true })
  })

  test('that was refused may be tried again', async () => {
    const server = await startMisbehavingServer([cuts])
    await server.close()
    const error = await failureOf(open(server.url).run({ query: 'SELECT 1' }))
    expect(error).toMatchObject({ retryable: true, type: undefined })
    expect(error.message).toContain('ECONNREFUSED')
  })

  test('because the other side speaks no HTTP will not do better', async () => {
    const { tables } = await against([response => response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n')])
    expect(await failureOf(tables.run({ query: 'SELECT 1' }))).toMatchObject({ retryable: false })
  })

  test('is sent again when it reads, at most twice', async () => {
    const { server, tables } = await against([cuts, cutsHalfway, answers('{"n":1}\n{"n":2}\n')])
    expect(await tables.rows({ query: 'SELECT n' })).toEqual([{ n: 1 }, { n: 2 }])
    expect(server.requests).toHaveLength(3)
    const always = await against([cuts])
    await failureOf(always.tables.rows({ query: 'SELECT n' }))
    expect(always.server.requests).toHaveLength(3)
  })

  test('is never sent again when it writes', async () => {
    const { server, tables } = await against([cuts])
    await failureOf(tables.insert(insert))
    await failureOf(tables.run({ query: 'INSERT INTO a SELECT 1' }))
    expect(server.requests).toHaveLength(2)
  })
})

describe('an answer of something else than ClickHouse', () => {
  test.each([
    [502, true],
    [503, true],
    [504, true],
    [429, true],
    [301, false],
    [401, false],
    [404, false],
    [500, false],
  ])('with status %i: retryable is %s, and its text is not quoted', async (status, retryable) => {
    const { tables } = await against([answers('<h1>mind@private.example</h1>', {}, status)])
    const error = await failureOf(tables.run({ query: 'SELECT 1' }))
    expect(error).toMatchObject({ retryable, type: undefined })
    expect(error.message).toContain(String(status))
  })

  test('that pretends to be a success is not taken for rows, nor quoted', async () => {
    const { tables } = await against([answers('<h1>mind@private.example</h1>')])
    expect(await failureOf(tables.rows({ query: 'SELECT 1' }))).toMatchObject({ retryable: true })
  })
})

describe('an error of ClickHouse', () => {
  test('counts although the status said success before', async () => {
    const { tables } = await against([
      response => {
        response.writeHead(200, [
          ['X-ClickHouse-Progress', '{"read_rows":"1"}'],
          ['X-ClickHouse-Progress', '{"read_rows":"2"}'],
          ['X-ClickHouse-Exception-Code', '241'],
        ])
        response.end(exceptionText(241, 'MEMORY_LIMIT_EXCEEDED', 'Memory limit exceeded'))
      },
    ])
    for (const done of [
      tables.run({ query: 'INSERT INTO a SELECT 1' }),
      tables.insert(insert),
      tables.rows({ query: 'SELECT 1' }),
    ]) {
      expect(await failureOf(done)).toMatchObject({ retryable: true, type: 'MEMORY_LIMIT_EXCEEDED' })
    }
  })

  test('counts where only the body tells', async () => {
    const { tables } = await against([answers(exceptionText(159, 'TIMEOUT_EXCEEDED', 'Timeout exceeded'))])
    expect(await failureOf(tables.run({ query: 'INSERT INTO a SELECT 1' }))).toMatchObject({
      retryable: true,
      type: 'TIMEOUT_EXCEEDED',
    })
  })

  test('about inserted rows says where, and not what', async () => {
    const message = `Cannot parse input: expected '\\t' before: 'mind@private.example': (at row 3)\n\nRow 3:\nprivate.example`
    const { tables } = await against([fails(27, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED', message, 400)])
    const error = await failureOf(tables.insert(insert))
    expect(error).toMatchObject({ retryable: false, type: 'CANNOT_PARSE_INPUT_ASSERTION_FAILED' })
    expect(error.message).toContain('model.pledge_ledger')
    expect(error.message).toContain('row 3')
  })

  test('that says that a replica is behind is a reason to read again, perhaps from another', async () => {
    const { server, tables } = await against([
      fails(289, 'REPLICA_IS_NOT_IN_QUORUM', 'Replica does not have part'),
      answers('{"n":1}\n'),
    ])
    expect(await tables.rows({ query: 'SELECT n' })).toEqual([{ n: 1 }])
    expect(server.requests).toHaveLength(2)
  })

  test('is otherwise not asked for twice, even of a read that might succeed later', async () => {
    const { server, tables } = await against([fails(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many')])
    await failureOf(tables.rows({ query: 'SELECT 1' }))
    expect(server.requests).toHaveLength(1)
  })
})

test('what fails is thrown, and nothing of it is printed', async () => {
  const print = (['error', 'warn', 'info', 'debug', 'log'] as const).map(name => vi.spyOn(console, name))
  const message = 'value mind@private.example'
  const { tables } = await against([fails(53, 'TYPE_MISMATCH', message, 400), cuts, cutsHalfway])
  for (let n = 0; n < 3; n++) await failureOf(tables.insert(insert))
  for (const printed of print) expect(printed).not.toHaveBeenCalled()
  vi.restoreAllMocks()
})

describe('a caller that stops waiting', () => {
  const ways: [string, (tables: Tables, signal: AbortSignal) => Promise<unknown>][] = [
    ['rows', (tables, signal) => tables.rows({ query: 'SELECT 1' }, { signal })],
    ['a statement', (tables, signal) => tables.run({ query: 'SELECT 1' }, { signal })],
    ['an insert', (tables, signal) => tables.insert(insert, { signal })],
  ]

  test.each(ways)('for %s is let go at once, and its connection is closed', async (_, send) => {
    const abort = new AbortController()
    const { server, tables } = await against([() => abort.abort()])
    await expectAbandoned(send(tables, abort.signal))
    await server.whenNoneIsOpen()
    expect(server.requests).toHaveLength(1)
  })

  test.each(ways)('for %s in the middle of the answer is let go too', async (_, send) => {
    const abort = new AbortController()
    const { server, tables } = await against([stopsHalfway])
    // The headers are there, and the client has begun to wait for the rest.
    const onHeaders = (): unknown => setImmediate(() => abort.abort())
    subscribe('http.client.response.finish', onHeaders)
    await expectAbandoned(send(tables, abort.signal))
    unsubscribe('http.client.response.finish', onHeaders)
    await server.whenNoneIsOpen()
  })

  test('before its statement was sent leaves it unsent', async () => {
    const { server, tables } = await against([answers('')])
    await failureOf(tables.insert(insert, { signal: AbortSignal.abort() }))
    expect(server.requests).toHaveLength(0)
  })
})

describe('connections', () => {
  test('are never more than allowed, and the others wait', async () => {
    const held: (() => void)[] = []
    const { server, tables } = await against(
      [
        response => {
          held.push(() => response.end('{"n":1}\n'))
          // Both places are taken, so nothing else can come before one of the two is answered.
          if (held.length >= 2) held.shift()?.()
          if (server.requests.length === 8) for (const answer of held) answer()
        },
      ],
      { connectionsMax: 2 },
    )
    await Promise.all(Array.from({ length: 8 }, () => tables.rows({ query: 'SELECT 1' })))
    expect(server.connections.openMost).toBe(2)
  })

  test('are used again, and closed by us once they have idled long enough', async () => {
    const { server, tables } = await against([answers('{"n":1}\n')], { idleConnectionMsMax: 100 })
    await tables.rows({ query: 'SELECT 1' })
    await tables.run({ query: 'SELECT 1' })
    expect(server.connections.opened).toBe(1)
    await server.whenNoneIsOpen()
    expect(await tables.rows({ query: 'SELECT 1' })).toEqual([{ n: 1 }])
    expect(server.connections.opened).toBe(2)
  })

  test('that cannot be had are refused, beyond a thousand that wait', async () => {
    const { tables } = await against([isSilent], { connectionsMax: 1, requestMsMax: 60_000 })
    const abort = new AbortController()
    const waiting = Array.from({ length: 1_001 }, () =>
      tables.rows({ query: 'SELECT 1' }, { signal: abort.signal }),
    )
    const error = await failureOf(tables.rows({ query: 'SELECT 1' }))
    expect(error).toMatchObject({ retryable: true })
    abort.abort()
    expect((await Promise.allSettled(waiting)).every(({ status }) => status === 'rejected')).toBe(true)
  })

  test('are closed only when the statements that run have ended', async () => {
    const { server, tables } = await against([
      response => {
        closed = tables.close().then(() => ended.push('closed'))
        response.end('{"n":1}\n')
      },
    ])
    const ended: string[] = []
    let closed: Promise<unknown> = Promise.resolve()
    await tables.rows({ query: 'SELECT 1' }).then(() => ended.push('answered'))
    await closed
    expect(ended).toEqual(['answered', 'closed'])
    await server.whenNoneIsOpen()
  })
})

describe('what is sent', () => {
  test('carries the credentials in a header, and nowhere else', async () => {
    const { server, tables } = await against([answers('')])
    await tables.insert(insert)
    const [request] = server.requests
    expect(request?.headers.authorization).toBe(
      `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    )
    expect(request?.parameters.toString()).not.toContain(password)
  })

  test('of a read cannot write, and ends when nobody waits for it', async () => {
    const { server, tables } = await against([answers('')])
    await tables.rows({ query: 'SELECT 1' })
    expect(server.requests[0]?.parameters.get('readonly')).toBe('2')
    expect(server.requests[0]?.parameters.get('cancel_http_readonly_queries_on_client_close')).toBe('1')
  })

  test('asks for the answer when the statement has ended, and for signs of life before', async () => {
    const { server, tables } = await against([answers('')], { requestMsMax: 30_000 })
    await tables.run({ query: 'INSERT INTO a SELECT 1' })
    await tables.insert(insert)
    await tables.rows({ query: 'SELECT 1' })
    expect(server.requests.map(({ parameters }) => parameters.get('wait_end_of_query'))).toEqual([
      '1',
      '1',
      '1',
    ])
    expect(server.requests[0]?.parameters.get('send_progress_in_http_headers')).toBe('1')
    expect(Number(server.requests[0]?.parameters.get('http_headers_progress_interval_ms'))).toBe(10_000)
  })

  test('carries the settings that every statement is to have', async () => {
    const { server, tables } = await against([answers('')], {
      statementSettings: { insert_quorum: 'auto', select_sequential_consistency: 1 },
    })
    await tables.run({ query: 'SELECT 1' })
    await tables.insert(insert)
    await tables.rows({ query: 'SELECT 1' })
    for (const { parameters } of server.requests) {
      expect(parameters.get('insert_quorum')).toBe('auto')
      expect(parameters.get('select_sequential_consistency')).toBe('1')
    }
  })

  test('has parameters in the URL while they are few, and in the text when they are many', async () => {
    const { server, tables } = await against([answers('')])
    const query = 'SELECT {ids:Array(String)}'
    await tables.rows({ query, query_params: { ids: ['a'] } })
    const ids = Array.from({ length: 100 }, (_, n) => `${n}`.padStart(256, 'x'))
    await tables.rows({ query, query_params: { ids } })
    const [few, many] = server.requests
    expect(few?.parameters.get('param_ids')).toBe("['a']")
    expect(few?.body).toBe(query)
    expect(many?.parameters.has('param_ids')).toBe(false)
    expect(many?.body).toContain(ids.at(-1))
  })

  test('is compressed where that is wanted', async () => {
    const { server, tables } = await against([answers('')], { compression: true })
    await tables.insert(insert)
    await tables.rows({ query: 'SELECT 1' })
    expect(server.requests[0]?.headers['content-encoding']).toBe('gzip')
    expect(server.requests[1]?.headers['accept-encoding']).toBe('gzip')
    expect(server.requests[1]?.parameters.get('enable_http_compression')).toBe('1')
  })
})

test.each([
  'not a url',
  'ftp://127.0.0.1:8123',
  `http://${user}:${password}@127.0.0.1:8123`,
  'http://127.0.0.1:8123/database',
  'http://127.0.0.1:8123/?request_timeout=1',
])('a URL that is more or less than a server is refused and not quoted (%#)', url => {
  expect(() => open(url)).toThrow(TypeError)
  expect(() => open(url)).not.toThrow(password)
})

function cutsChunk(response: Parameters<Behaviour>[0]): void {
  response.writeHead(200)
  response.write('{"n":1}\n{"n"', () => response.socket?.destroy())
}
