import { describe, expect, test } from 'vitest'
import { createResponseCounter } from './response-counter.ts'

const response = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n{"a":\r\n\r\n"b"',
)

describe('the end of a response', () => {
  test('is found at any split of the bytes', () => {
    for (let first = 0; first <= response.length; first++) {
      for (let second = first; second <= response.length; second++) {
        const counter = createResponseCounter(200)
        const chunks = [
          response.subarray(0, first),
          response.subarray(first, second),
          response.subarray(second),
        ]
        const ended = chunks.filter(chunk => chunk.length > 0).map(chunk => counter.take(chunk))
        expect(ended.indexOf(true)).toBe(ended.length - 1)
      }
    }
  })

  test('is found for the next response of the connection, and for a response without a body', () => {
    const counter = createResponseCounter(304)
    const confirmed = Buffer.from('HTTP/1.1 304 Not Modified\r\netag: W/"1"\r\n\r\n')
    expect([counter.take(confirmed), counter.take(confirmed)]).toEqual([true, true])
  })

  test('another status, more bytes than announced, and a missing Content-Length are errors', () => {
    expect(() => createResponseCounter(304).take(response)).toThrow('answered HTTP/1.1 200')
    const longer = Buffer.concat([response, Buffer.from('HTTP/1.1')])
    expect(() => createResponseCounter(200).take(longer)).toThrow('more bytes')
    const chunked = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    expect(() => createResponseCounter(200).take(chunked)).toThrow('no Content-Length')
  })
})
