/**
 * Proves that no other client can use the session's user, which ClickHouse accepts without a password, and that no other user
 * can be guessed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { askClickHouse, type ClickHouseAddress } from '../../support/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative } from '../../support/native-protocol.ts'

describe('the session’s user', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables

  beforeAll(async () => {
    directory = makeTestDirectory()
    opened = await directory.open()
  })

  afterAll(async () => {
    await opened.close()
    directory.remove()
  })

  const statements = [
    'SELECT 1',
    "SELECT file('/etc/passwd')",
    'SELECT sleep(1)',
    'SELECT count() FROM numbers(10)',
    'SELECT * FROM pledgeview_read_1.campaigns',
    'SELECT * FROM crowdfunding.campaigns',
    'SELECT * FROM system.processes',
    'SHOW TABLES FROM crowdfunding',
    'SYSTEM STOP LISTEN HTTP',
    'SYSTEM STOP LISTEN TCP',
    'SYSTEM STOP LISTEN QUERIES ALL',
    'SYSTEM SHUTDOWN',
    'KILL QUERY WHERE 1',
    "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
    'CREATE TABLE crowdfunding.mine (n UInt8) ENGINE = Memory',
    'CREATE TEMPORARY TABLE mine (n UInt8)',
    'SET max_sessions_for_user = 100',
    'SET max_sessions_for_user = DEFAULT',
  ]

  test.each(statements)('may do nothing over HTTP: %s', async query => {
    await expect(askClickHouse(nobody(), query)).rejects.toThrow('USER_SESSION_LIMIT_EXCEEDED')
  })

  test.each(statements)('may do nothing over the native protocol: %s', async query => {
    const address = { port: opened.clickHouse.nativePort ?? 0, user: 'default', password: '' }
    await expect(askNative(address, query)).rejects.toThrow('overflown session count')
  })

  test.each([
    'session_id=mine',
    'max_sessions_for_user=100',
    'profile=program',
    'quota_key=mine',
    'default_format=Null',
    'compatibility=18.1',
  ])('gets no access with a parameter: %s', async parameter => {
    const response = await fetch(`${opened.clickHouse.url}/?user=default&query=SELECT+1&${parameter}`)
    expect(response.headers.get('x-clickhouse-exception-code')).toMatch(/^(700|452)$/)
    expect(response.status).not.toBe(200)
  })

  test('may do nothing, even with many requests, and the server keeps running', {
    timeout: 120_000,
  }, async () => {
    const pid = opened.clickHouse.pid()
    let refused = 0
    for (let round = 0; round < 60; round++) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) =>
          askClickHouse(nobody(), statements[n % statements.length] ?? '').then(
            () => 'let in',
            (error: Error) => error.message,
          ),
        ),
      )
      refused += answers.filter(answer => answer.includes('USER_SESSION_LIMIT_EXCEEDED')).length
    }
    expect(refused).toBe(3_000)
    expect(opened.clickHouse.pid()).toBe(pid)
    expect(opened.clickHouse.outage()).toBeUndefined()
    expect(await opened.tables.rows({ query: 'SELECT count() AS rows FROM crowdfunding.campaigns' })).toEqual(
      [{ rows: 0 }],
    )
  })

  test.each([
    ['pledgeview', ''],
    ['pledgeview', 'pledgeview'],
    ['pledgeview_definer', ''],
    ['pledgeview_definer', '0'.repeat(64)],
    ['analyst', 'wrong'],
    ['nobody', ''],
  ])('lets no other user in: %j with password %j', async (user, password) => {
    await expect(askClickHouse({ ...nobody(), user, password }, 'SELECT 1')).rejects.toThrow(
      'AUTHENTICATION_FAILED',
    )
    const native = askNative({ port: opened.clickHouse.nativePort ?? 0, user, password }, 'SELECT 1')
    await expect(native).rejects.toMatchObject({ code: 516 })
  })

  function nobody(): ClickHouseAddress {
    return { url: opened.clickHouse.url, user: 'default', password: '' }
  }
})
