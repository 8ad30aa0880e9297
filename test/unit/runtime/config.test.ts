import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { appOptionsOf } from '../../../services/query/options.ts'
import { ConfigError, readConfig, settingNames } from '../../../services/runtime/config.ts'

const example = readFileSync(new URL('../../../deploy/pledgeview.env.example', import.meta.url), 'utf8')
const listed = [...example.matchAll(/^#(PLEDGEVIEW_[A-Z_]+)=(.*)$/gm)].map(([, name, value]) => ({
  name,
  value,
}))

describe('the configuration', () => {
  test('the commented example has every setting and no other', () => {
    expect(listed.map(({ name }) => name).sort()).toEqual([...settingNames].sort())
  })

  test('the example states the true defaults', () => {
    const defaults = readConfig({})
    const stated = Object.fromEntries(listed.map(({ name, value }) => [name, value]))
    expect(readConfig(stated)).toEqual(defaults)
  })

  test('all faults are reported at once, each with the name of its setting', () => {
    const read = () =>
      readConfig({
        PLEDGEVIEW_FOLD_MS_MAX: 'soon',
        PLEDGEVIEW_PLATFORM_CURRENCY: 'EURO',
        PLEDGEVIEW_REJECT_SHARE_MAX: '2',
        PLEDGEVIEW_KEY_PEPPER: 'short',
        PLEDGEVIEW_LOG_LEVEL: 'loud',
        PLEDGEVIEW_TYPO: '1',
        // As Docker reads it from a file of settings, and as it stands in an address.
        PLEDGEVIEW_HOST: '"127.0.0.1"',
        PLEDGEVIEW_OPS_HOST: '[::1]',
        PLEDGEVIEW_MAIL_FROM: '"Pledgeview <no-reply@example.com>"',
        // Relations: one is broken, and one cannot be compared.
        PLEDGEVIEW_BATCH_MS_MAX: '5000',
        PLEDGEVIEW_RETRY_MS_MAX: '1000',
        PLEDGEVIEW_KAFKA_SESSION_MS: 'long',
      })
    expect(read).toThrow(ConfigError)
    const names = ['FOLD_MS_MAX', 'PLATFORM_CURRENCY', 'REJECT_SHARE_MAX', 'KEY_PEPPER', 'LOG_LEVEL', 'TYPO']
    for (const name of [
      ...names,
      'HOST',
      'OPS_HOST',
      'BATCH_MS_MAX: is longer than',
      'KAFKA_SESSION_MS: is not a whole',
    ]) {
      expect(read).toThrow(`PLEDGEVIEW_${name}`)
    }
    expect(read).not.toThrow('is not shorter')
  })

  test('relations between settings are checked', () => {
    expect(() => readConfig({ PLEDGEVIEW_BATCH_MS_MAX: '5000', PLEDGEVIEW_RETRY_MS_MAX: '1000' })).toThrow(
      'PLEDGEVIEW_BATCH_MS_MAX',
    )
    expect(() =>
      readConfig({ PLEDGEVIEW_KAFKA_SESSION_MS: '9000', PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX: '9000' }),
    ).toThrow('PLEDGEVIEW_KAFKA_SESSION_MS')
    const partial = () =>
      readConfig({
        PLEDGEVIEW_OIDC_ISSUER: 'https://login.example',
        PLEDGEVIEW_KAFKA_SASL_USERNAME: 'ada',
        PLEDGEVIEW_CLICKHOUSE_CLUSTER: 'shards',
        PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD: 'secret',
      })
    for (const name of ['OIDC_ISSUER', 'KAFKA_SASL_MECHANISM', 'CLICKHOUSE_SHARD_URLS'])
      expect(partial).toThrow(`PLEDGEVIEW_${name}: has to be set together with PLEDGEVIEW_`)
    expect(() => readConfig({ PLEDGEVIEW_OIDC_CLIENT_SECRET: 's' })).toThrow('needs PLEDGEVIEW_OIDC_ISSUER')
    expect(partial).toThrow('PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD: needs PLEDGEVIEW_SCHEMA_REGISTRY_USER')
  })

  test('a certificate for Kafka without TLS is refused: the password would be sent in clear text', () => {
    const caFile = { PLEDGEVIEW_KAFKA_TLS_CA_FILE: 'ca.pem' }
    expect(() => readConfig(caFile)).toThrow('PLEDGEVIEW_KAFKA_TLS_CA_FILE: needs PLEDGEVIEW_KAFKA_TLS=true')
    expect(readConfig({ ...caFile, PLEDGEVIEW_KAFKA_TLS: 'true' })).toMatchObject(caFile)
  })

  test('an address of a server with more than it may have is refused, and not quoted', () => {
    const extras = ['?request_timeout=1', '#a'].map(rest => `https://server:8443/${rest}`)
    for (const url of [...extras, 'ftp://server', 'https://ada:do-not-print-me@server']) {
      const read = () =>
        readConfig({
          PLEDGEVIEW_CLICKHOUSE_URL: url,
          PLEDGEVIEW_CLICKHOUSE_CLUSTER: 'shards',
          PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: `http://127.0.0.1:8123,${url}`,
          PLEDGEVIEW_SCHEMA_REGISTRY_URL: url,
        })
      for (const name of ['CLICKHOUSE_URL', 'CLICKHOUSE_SHARD_URLS.1', 'SCHEMA_REGISTRY_URL'])
        expect(read).toThrow(`PLEDGEVIEW_${name}: `)
      expect(read).not.toThrow('do-not-print-me')
    }
    const withPath = 'https://server/registry'
    expect(() => readConfig({ PLEDGEVIEW_CLICKHOUSE_URL: withPath })).toThrow(
      'PLEDGEVIEW_CLICKHOUSE_URL: may',
    )
    expect(readConfig({ PLEDGEVIEW_SCHEMA_REGISTRY_URL: withPath })).toMatchObject({
      PLEDGEVIEW_SCHEMA_REGISTRY_URL: withPath,
    })
  })

  test('the views, which analysts may read, have no database of the private tables', () => {
    const read = (base: string, views: string) =>
      readConfig({ PLEDGEVIEW_DATABASE: base, PLEDGEVIEW_VIEWS_DATABASE: views })
    for (const views of ['own', 'own_all', 'own_ledger_1', 'own_read_12', 'own_read_12_all'])
      expect(() => read('own', views)).toThrow('PLEDGEVIEW_VIEWS_DATABASE: is a database of private tables')
    // On a cluster the shards have their views there.
    expect(() => read('own_parts', 'own')).toThrow('PLEDGEVIEW_VIEWS_DATABASE')
    for (const views of ['own_views', 'own_ledger', 'another_all'])
      expect(read('own', views)).toMatchObject({ PLEDGEVIEW_VIEWS_DATABASE: views })
  })

  test('a trusted proxy is an address or a range; true is refused with what to write instead', () => {
    const proxies = (text: string) => readConfig({ PLEDGEVIEW_TRUST_PROXY: text }).PLEDGEVIEW_TRUST_PROXY
    expect(proxies('')).toEqual([])
    expect(proxies('false')).toEqual([])
    expect(proxies('192.0.2.7, 10.0.0.0/8')).toEqual(['192.0.2.7', '10.0.0.0/8'])
    expect(() => proxies('true')).toThrow(
      'PLEDGEVIEW_TRUST_PROXY: true would believe any address that a client writes. Name the addresses or ranges of your ' +
        'proxies, for example 127.0.0.1,10.0.0.0/8',
    )
    expect(() => proxies('10.0.0.0/8,0.0.0.0/0')).toThrow('"0.0.0.0/0" is every address')
  })

  test.each([
    // It is at the root of its host.
    ['PORTAL', 'https://portal.example/portal', 'has more than'],
    ['PORTAL', 'https://portal.example/?a=b', 'has more than'],
    ['PORTAL', 'https://portal.example/#top', 'has more than'],
    ['PORTAL', 'https://ada:secret@portal.example', 'has more than'],
    ['PORTAL', 'portal.example', 'is not an http or https address'],
    // It stands on a public page, and the settings of clients have no room for a path.
    ['SQL', 'https://a:b@sql.example', 'has a password'],
    ['SQL', 'https://sql.example/?password=b', 'has a password'],
    ['SQL', 'https://data.example/sql?user=analyst', 'has a path'],
    ['SQL', 'sql.example', 'is not an http'],
  ])('the address of %s may not be %s: it %s', (name, url, fault) => {
    expect(() => readConfig({ [`PLEDGEVIEW_${name}_URL`]: url })).toThrow(`PLEDGEVIEW_${name}_URL: ${fault}`)
  })

  test.each([
    [
      'PLEDGEVIEW_PORTAL_URL',
      ['https://portal.example', 'http://localhost:8081/', 'https://Portal.example:443/'],
    ],
    ['PLEDGEVIEW_MAIL_FROM', ['a@b.example', '"Name, of it" <a@b.example>', "Łucja <o'n@b.example>"]],
    ['PLEDGEVIEW_SQL_URL', ['https://sql.example/?user=analyst', 'https://sql.example?user=analyst']],
  ])('%s is kept as it is', (name, urls) => {
    for (const url of urls) expect(readConfig({ [name]: url })).toMatchObject({ [name]: url })
  })

  test('no connection is cut before the statements of its request may take no longer', () => {
    const config = readConfig({ PLEDGEVIEW_QUERY_MS_MAX: '60000' })
    expect(appOptionsOf(config, 'pepper').socketTimeoutMs).toBeGreaterThan(2 * 60_000)
  })
})
