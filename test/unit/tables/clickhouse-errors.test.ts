import { describe, expect, test } from 'vitest'
import { answerError, connectionError } from '../../../services/tables/clickhouse/clickhouse-errors.ts'
import { exceptionText } from '../../support/servers/misbehaving-server.ts'

describe('an error of ClickHouse', () => {
  test.each([
    [159, 'TIMEOUT_EXCEEDED'],
    [160, 'TOO_SLOW'],
    [201, 'QUOTA_EXCEEDED'],
    [202, 'TOO_MANY_SIMULTANEOUS_QUERIES'],
    [209, 'SOCKET_TIMEOUT'],
    [210, 'NETWORK_ERROR'],
    [236, 'ABORTED'],
    [241, 'MEMORY_LIMIT_EXCEEDED'],
    [252, 'TOO_MANY_PARTS'],
    [279, 'ALL_CONNECTION_TRIES_FAILED'],
    [394, 'QUERY_WAS_CANCELLED'],
    [439, 'CANNOT_SCHEDULE_TASK'],
    [700, 'USER_SESSION_LIMIT_EXCEEDED'],
    [741, 'TABLE_UUID_MISMATCH'],
    [745, 'SERVER_OVERLOADED'],
  ])('that can pass may be tried again: %i %s', (code, type) => {
    expect(answerError(500, exceptionText(code, type, 'It can pass.'))).toMatchObject({
      retryable: true,
      type,
      message: 'It can pass.',
    })
  })

  test.each([
    [16, 'NO_SUCH_COLUMN_IN_TABLE', 404],
    [27, 'CANNOT_PARSE_INPUT_ASSERTION_FAILED', 400],
    [43, 'ILLEGAL_TYPE_OF_ARGUMENT', 500],
    [60, 'UNKNOWN_TABLE', 404],
    [62, 'SYNTAX_ERROR', 400],
    [164, 'READONLY', 500],
    [395, 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 500],
    [456, 'UNKNOWN_QUERY_PARAMETER', 500],
    [497, 'ACCESS_DENIED', 403],
    [516, 'AUTHENTICATION_FAILED', 403],
    // Whatever the status says: it is the error that counts.
    [62, 'SYNTAX_ERROR', 503],
  ])('that stays may not: %i %s with status %i', (code, type, status) => {
    expect(answerError(status, exceptionText(code, type, 'It stays.'))).toMatchObject({
      retryable: false,
      type,
    })
  })

  test.each([
    'Attempt to read after eof: while receiving packet from 127.0.0.1:9000, local address: 127.0.0.1:47288: While executing Remote.',
    'Attempt to read after eof: Insertion status: Wrote 9 blocks and 9 rows on shard 0 replica 0, 127.0.0.1:9000 (average 0 ms per block) .',
  ])('that another shard ended in the middle may be tried again: %s', message => {
    const text = exceptionText(32, 'ATTEMPT_TO_READ_AFTER_EOF', message)
    expect(answerError(500, text)).toMatchObject({ retryable: true, message })
    expect(answerError(500, text, 'm.t')).toMatchObject({
      retryable: true,
      message: 'ClickHouse refused the rows for m.t: ATTEMPT_TO_READ_AFTER_EOF',
    })
  })

  test('that a file ended in the middle stays', () => {
    const text = exceptionText(
      32,
      'ATTEMPT_TO_READ_AFTER_EOF',
      'Attempt to read after eof: while reading column n',
    )
    expect(answerError(500, text)).toMatchObject({ retryable: false })
  })

  test('that one node passes on from another is told by what the other said', () => {
    const inner = exceptionText(252, 'TOO_MANY_PARTS', 'Too many parts').trimEnd()
    const text = `Code: 252. DB::Exception: There was an error on [node-2:9000]: ${inner}. (TOO_MANY_PARTS)\n`
    expect(answerError(500, text)).toMatchObject({ retryable: true, type: 'TOO_MANY_PARTS' })
  })

  test.each([
    ['UNKNOWN_TABLE', 60, "Table 'a.b' does not exist"],
    ['TOO_MANY_PARTS', 252, 'Too many parts (3000) in table'],
  ])('of an insert is passed on whole if it is not about the rows: %s', (type, code, message) => {
    expect(answerError(500, exceptionText(code, type, message), 'a.b').message).toBe(message)
  })

  test.each([
    ['TYPE_MISMATCH', 53],
    ['CANNOT_PARSE_TEXT', 6],
    ['INCORRECT_DATA', 117],
    ['NEVER_HEARD_OF_IT', 12_345],
  ])('of an insert quotes nothing if it may be about the rows: %s', (type, code) => {
    const error = answerError(400, exceptionText(code, type, 'value mind@private.example (at row 7)'), 'a.b')
    expect(error.message).toBe(`ClickHouse refused the rows for a.b: ${type} at row 7`)
  })

  test.each([
    ['STD_EXCEPTION', 'std::exception. Code: 1001, type: std::bad_alloc, e.what() = mind@private.example'],
    ['POCO_EXCEPTION', 'Poco::Exception. Code: 1000, e.code() = 28, File error: mind@private.example'],
  ])('of a library below it is its own too: %s', (type, words) => {
    const text = `${words} (version 26.7.2.1)\n`
    expect(answerError(500, text)).toMatchObject({
      retryable: false,
      type,
      message: expect.stringContaining(words),
    })
    expect(answerError(500, text, 'a.b').message).toBe(`ClickHouse refused the rows for a.b: ${type}`)
    const own = exceptionText(210, 'NETWORK_ERROR', `Listen failed:\n${words}`)
    expect(answerError(500, own)).toMatchObject({ type: 'NETWORK_ERROR', retryable: true })
  })

  test('is one line of bounded length', () => {
    const { message } = answerError(400, exceptionText(62, 'SYNTAX_ERROR', `at\n\n ${'long '.repeat(1_000)}`))
    expect(message).not.toContain('\n')
    expect(message.length).toBeLessThanOrEqual(500)
  })
})

describe('a connection that failed', () => {
  test.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EAI_AGAIN', 'ENOTFOUND'])(
    'for a reason that can pass may be tried again: %s',
    code => {
      expect(connectionError(coded(code), 'host:1')).toMatchObject({ retryable: true, type: undefined })
    },
  )

  test.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'CERT_HAS_EXPIRED',
    'EPROTO',
    'HPE_INVALID_CONSTANT',
  ])('because of what the other side is may not: %s', code => {
    expect(connectionError(coded(code), 'host:1')).toMatchObject({ retryable: false, type: undefined })
  })

  test('is told with server and reason, and not with the text of the cause', () => {
    const error = connectionError(coded('ECONNREFUSED'), 'host:1')
    expect(error.message).toBe('no answer from ClickHouse at host:1: ECONNREFUSED')
    expect(error.cause).toBeUndefined()
  })
})

function coded(code: string): Error {
  return Object.assign(new Error('mind@private.example'), { code })
}
