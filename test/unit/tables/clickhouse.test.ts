import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, test, vi } from 'vitest'
import type { Tables } from '../../../services/tables/port.ts'
import {
  answers,
  type Behaviour,
  cuts,
  cutsHalfway,
  exceptionText,
  fails,
  isSilent,
  stopsHalfway,
} from '../../support/servers/misbehaving-server.ts'
import { against, expectAbandoned, failureOf, insert } from './against-server.ts'

describe('a request that got no whole answer', () => {
  const unknown: [string, Behaviour][] = [
    ['was cut', cuts],
    ['was cut in the middle of the answer', cutsHalfway],
    ['was cut in the middle of a chunk', cutsChunk],
    ['met silence', isSilent],
    ['met silence in the middle of the answer', stopsHalfway],
  ]

  test.each(unknown)('that %s may be tried again, and that its outcome is unknown', async (_, behaviour) => {
    for (const send of [
      (tables: Tables) => tables.rows({ query: 'SELECT 1' }),
      (tables: Tables) => tables.run({ query: 'INSERT INTO a SELECT 1' }),
      (tables: Tables) => tables.insert(insert),
    ]) {
      const { tables } = await against([behaviour], { silenceMsMax: 100 })
      expect(await failureOf(send(tables))).toMatchObject({ retryable: true, type: undefined })
    }
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

describe('an answer that is not from ClickHouse', () => {
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

  test('counts if only the body shows it', async () => {
    const { tables } = await against([answers(exceptionText(159, 'TIMEOUT_EXCEEDED', 'Timeout exceeded'))])
    for (const done of [tables.run({ query: 'INSERT INTO a SELECT 1' }), tables.rows({ query: 'SELECT 1' })])
      expect(await failureOf(done)).toMatchObject({ retryable: true, type: 'TIMEOUT_EXCEEDED' })
  })

  test('that says that the table was just exchanged is a reason to read again, and not to write again', async () => {
    const exchanged = fails(741, 'TABLE_UUID_MISMATCH', 'It passes.')
    const { server, tables } = await against([exchanged, answers('{"n":1}\n')])
    expect(await tables.rows({ query: 'SELECT n' })).toEqual([{ n: 1 }])
    expect(server.requests).toHaveLength(2)
    const writing = await against([exchanged])
    expect(await failureOf(writing.tables.insert(insert))).toMatchObject({
      retryable: true,
      type: 'TABLE_UUID_MISMATCH',
    })
    expect(writing.server.requests).toHaveLength(1)
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
})

function cutsChunk(response: Parameters<Behaviour>[0]): void {
  response.writeHead(200)
  response.write('{"n":1}\n{"n"', () => response.socket?.destroy())
}
