import { describe, expect, test } from 'vitest'
import { answers, isSilent } from '../../support/servers/misbehaving-server.ts'
import { against, failureOf, insert } from './against-server.ts'

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
    const { server, tables } = await against([answers('{"n":1}\n')], { idleConnectionMsMax: 1_500 })
    // Between the two, a busy machine may stand still for some hundred milliseconds.
    await tables.rows({ query: 'SELECT 1' })
    await tables.run({ query: 'SELECT 1' })
    expect(server.connections.opened).toBe(1)
    await server.whenNoneIsOpen()
    expect(await tables.rows({ query: 'SELECT 1' })).toEqual([{ n: 1 }])
    expect(server.connections.opened).toBe(2)
  })

  test('that cannot be had are refused, beyond a thousand that wait', async () => {
    const { tables } = await against([isSilent], { connectionsMax: 1, silenceMsMax: 60_000 })
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
  test('asks for the answer when the statement has ended, and of a read that it ends with its caller', async () => {
    const { server, tables } = await against([answers('')])
    await tables.run({ query: 'INSERT INTO a SELECT 1' })
    await tables.insert(insert)
    await tables.rows({ query: 'SELECT 1' })
    for (const { parameters } of server.requests) expect(parameters.get('wait_end_of_query')).toBe('1')
    expect(server.requests[2]?.parameters.get('cancel_http_readonly_queries_on_client_close')).toBe('1')
  })
})
