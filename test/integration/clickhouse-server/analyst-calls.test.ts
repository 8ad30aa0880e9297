/**
 * Proves that an analyst cannot make ClickHouse open a connection, by any function, engine or format. Services next to it may
 * trust this machine (services/clickhouse-server/outgoing.ts).
 */

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { canRefuseCalls } from '../../../services/clickhouse-server/outgoing.ts'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { askAsAnalyst, waysToSet } from '../../support/analyst.ts'
import { askClickHouse } from '../../support/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative } from '../../support/native-protocol.ts'
import { needs, type Requirement } from '../../support/requirements.ts'

const landlock: Requirement = {
  isMet: canRefuseCalls(),
  reason: 'this system has no Landlock with rules for TCP (Linux 6.7)',
}

describe('an analyst', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables
  let url: string
  let listener: Server
  let calls: number

  beforeAll(async () => {
    directory = makeTestDirectory()
    opened = await directory.open()
    url = opened.door?.url ?? ''
    listener = createServer(socket => {
      calls++
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
  })

  beforeEach(() => {
    calls = 0
  })

  afterAll(async () => {
    listener.close()
    await opened.close()
    directory.remove()
  })

  test.each([
    "SELECT * FROM url('http://PLACE/', LineAsString)",
    "SELECT * FROM url('http://PLACE/', LineAsString) SETTINGS workload = DEFAULT",
    "SELECT * FROM urlCluster('default', 'http://PLACE/', LineAsString)",
    "SELECT * FROM s3('http://PLACE/bucket/key', NOSIGN, 'CSV', 'a String')",
    "SELECT * FROM s3Cluster('default', 'http://PLACE/bucket/key', 'CSV', 'a String')",
    "SELECT * FROM gcs('http://PLACE/bucket/key', 'CSV', 'a String')",
    "SELECT * FROM deltaLake('http://PLACE/bucket/key')",
    "SELECT * FROM iceberg('http://PLACE/bucket/key')",
    "SELECT * FROM hudi('http://PLACE/bucket/key')",
    "SELECT * FROM azureBlobStorage('http://PLACE/', 'a', 'b', 'c', 'ZA==', 'CSV', 'a String')",
    "SELECT * FROM hdfs('hdfs://PLACE/a', 'CSV', 'a String')",
    "SELECT * FROM remote('PLACE', 'pledgeview_read_1.campaigns')",
    "SELECT * FROM remote('PLACE', 'crowdfunding.campaigns', 'pledgeview', '')",
    "SELECT * FROM remoteSecure('PLACE', 'pledgeview_read_1.campaigns')",
    "SELECT * FROM mysql('PLACE', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('PLACE', 'a', 'b', 'c', 'd')",
    "SELECT * FROM mongodb('PLACE', 'a', 'b', 'c', 'd', 'e String')",
    "SELECT * FROM redis('PLACE', 'a', 'a String')",
    "SELECT * FROM ytsaurus('http://PLACE', 'a', 'b', 'c String')",
    "SELECT * FROM prometheusQuery('http://PLACE', 'a', now())",
    "INSERT INTO FUNCTION url('http://PLACE/', 'CSV', 'a String') VALUES ('a')",
    "BACKUP TABLE crowdfunding.campaigns TO S3('http://PLACE/bucket/key')",
    "CREATE DICTIONARY d (a String) PRIMARY KEY a SOURCE(HTTP(URL 'http://PLACE/' FORMAT 'CSV')) LAYOUT(FLAT())",
    "SELECT aiGenerate('a', map('url', 'http://PLACE/')) SETTINGS allow_experimental_ai_functions = 1",
    "SELECT 1 AS a FORMAT AvroConfluent SETTINGS format_avro_schema_registry_url = 'http://PLACE/', output_format_avro_confluent_subject = 'a'",
  ])('cannot make ClickHouse open a connection: %s', async template => {
    await expectRefused(inPlace(template))
  })

  describe.each(waysToSet)('cannot make ClickHouse open a connection with a setting %s', (_, set) => {
    const select = "SELECT formatRow('AvroConfluent', 1 AS a)"
    const subject = "output_format_avro_confluent_subject = 'a', format_avro_schema_registry_max_retries = 0"

    test('that is the address of a schema registry', async context => {
      needs(context, landlock)
      await expectRefused(
        inPlace(set(select, `format_avro_schema_registry_url = 'http://PLACE/', ${subject}`)),
      )
    })
  })

  test('cannot make ClickHouse open a connection to read an external table', async context => {
    needs(context, landlock)
    const { status } = await askAsAnalyst(
      url,
      inPlace(
        "SELECT * FROM (SELECT * FROM sent SETTINGS format_avro_schema_registry_url = 'http://PLACE/')",
      ),
      {
        parameters: { sent_structure: 'a String', sent_format: 'AvroConfluent' },
        table: '\0\0\0\0\x01a',
      },
    )
    expect(status).not.toBe(200)
    expect(calls).toBe(0)
  })

  test('could not do so even with all rights, before and after a restart', async context => {
    needs(context, landlock)
    for (const _ of ['before', 'after']) {
      const query = inPlace("SELECT * FROM url('http://PLACE/', LineAsString) SETTINGS http_max_tries = 1")
      await expect(askClickHouse(opened.clickHouse, query)).rejects.toThrow('Permission denied')
      expect(calls).toBe(0)
      await opened.clickHouse.kill()
      await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000, interval: 5 }).toBeDefined()
      await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000 }).toBeUndefined()
    }
  })

  function inPlace(template: string): string {
    return template.replace('PLACE', `127.0.0.1:${(listener.address() as AddressInfo).port}`)
  }

  /** Asks over both protocols. No connection may arrive. */
  async function expectRefused(query: string): Promise<void> {
    const { status, text } = await askAsAnalyst(url, query)
    expect(status, `${query}: ${text}`).not.toBe(200)
    const address = { port: opened.door?.nativePort ?? 0, user: 'analyst', password: '' }
    await expect(askNative(address, query), query).rejects.toMatchObject({ name: 'NativeError' })
    expect(calls).toBe(0)
  }
})
