/** Proves that ClickHouse’s server has nothing to show over HTTP without a sign-in, except its query page and whether it is alive. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnTables, openOwnTables } from '../../support/clickhouse.ts'

describe('over HTTP, ClickHouse', () => {
  let own: OwnTables

  beforeAll(async () => {
    own = await openOwnTables({ analyst: { password: '' } })
  })

  afterAll(() => own.close())

  test.each([
    ...['/dashboard', '/merges', '/jemalloc', '/binary', '/schema', '/replicas_status', '/metrics', '/docs'],
    ...['/webterminal', '/js/uplot.js', '/js/lz-string.js', '/query', '/play/', '//dashboard'],
  ])('has no page %s', async path => {
    for (const method of ['GET', 'HEAD', 'POST'])
      for (const search of ['', '?user=analyst', '?query=SELECT+1&user=analyst'])
        expect((await fetch(`${own.clickHouse.url}${path}${search}`, { method })).status, method).toBe(404)
  })

  test('has its query page', async () => {
    const response = await fetch(`${own.clickHouse.url}/play?user=analyst`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/html')
    expect(await response.text()).toContain('</html>')
  })

  test('says that it is alive, and answers queries', async () => {
    const answers = await Promise.all(
      ['/ping', '/?query=SELECT+1&user=analyst'].map(path => fetch(`${own.clickHouse.url}${path}`)),
    )
    expect(await Promise.all(answers.map(answer => answer.text()))).toEqual(['Ok.\n', '1\n'])
    const posted = await fetch(`${own.clickHouse.url}/?user=analyst`, { method: 'POST', body: 'SELECT 2' })
    expect(await posted.text()).toBe('2\n')
  })
})
