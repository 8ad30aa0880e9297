/**
 * Proves that an analyst reads the views of `crowdfunding` and nothing else: no other table, no file of the account that runs
 * ClickHouse (services/clickhouse-server/child.ts), no address (outgoing.ts); and changes nothing. Every query is asked
 * over both protocols.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { canRefuseCalls } from '../../../services/clickhouse-server/outgoing.ts'
import type { EmbeddedTables } from '../../../services/embedded/tables.ts'
import { type AnalystRequest, askAsAnalyst, waysToSet } from '../../support/clickhouse/analyst.ts'
import { askClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { askNative } from '../../support/clickhouse/native-protocol.ts'
import { publicViews } from '../../support/clickhouse/public-views.ts'
import {
  argumentForms,
  describing,
  harmless,
  refusedQueries,
} from '../../support/clickhouse/refused-queries.ts'
import { needs, type Requirement } from '../../support/runner/requirements.ts'

const landlock: Requirement = {
  isMet: canRefuseCalls(),
  reason: 'this system has no Landlock with rules for TCP (Linux 6.7)',
}
const campaigns = 3
/** In a private column, and in each file. Read as a CSV row, as a schema or as a template, a file puts it into the output. */
const secret = randomUUID()
const files: Readonly<Record<string, string>> = {
  'rows.csv': `${secret},1\n`,
  'schema.proto': `syntax = "proto3"; message M { string a = 1; } // ${secret}\n`,
  'template.txt': [secret, '${0:CSV}\n'].join(' '),
}
/** A view with parameters has columns only if it is called with them. */
const called = (name: string) => (name.endsWith('.campaign_by_slug') ? `${name}(slug = 'slug-0')` : name)

let directory: TestDirectory
let opened: EmbeddedTables
let folder: string
let listener: Server
let calls = 0
let url: string

beforeAll(async () => {
  directory = makeTestDirectory()
  folder = mkdtempSync(join(tmpdir(), 'pledgeview-files-'))
  opened = await directory.open()
  url = opened.door?.url ?? ''
  await opened.tables.run({
    query: `INSERT INTO pledgeview_read_1.campaigns (campaign_id, status, creator_id)
            SELECT toString(number), 'LIVE', '${secret}' FROM numbers(${campaigns}) SETTINGS async_insert = 0`,
  })
  // The place where ClickHouse resolves a relative name.
  const userFiles = join(directory.path, 'tables', 'user_files')
  mkdirSync(userFiles, { recursive: true })
  for (const [name, text] of Object.entries(files))
    for (const place of [folder, userFiles]) writeFileSync(join(place, name), text)
  listener = createServer(socket => {
    calls++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
})

afterAll(async () => {
  listener.close()
  await opened.close()
  directory.remove()
  rmSync(folder, { recursive: true, force: true })
})

describe('an analyst', () => {
  test('reads every view, and no other table, except those that describe ClickHouse itself', async () => {
    for (const view of publicViews)
      expect(await askAsAnalyst(url, `SELECT * FROM crowdfunding.${view}`)).toMatchObject({ status: 200 })
    expect(await native('SELECT campaign_id FROM crowdfunding.campaigns ORDER BY 1')).toEqual(['0', '1', '2'])
    const all = await opened.tables.rows<{ name: string }>({
      query: `SELECT concat(database, '.', name) AS name FROM system.tables
              WHERE lower(database) NOT IN ('crowdfunding', 'information_schema')`,
    })
    const readable: string[] = []
    for (const { name } of all) {
      const { status, text } = await askAsAnalyst(url, `SELECT * FROM ${called(name)} LIMIT 1`)
      if (status === 200) readable.push(name)
      else {
        expect(text, name).toContain('ACCESS_DENIED')
        await expect(native(`SELECT 1 FROM ${called(name)}`), name).rejects.toMatchObject({ code: 497 })
      }
    }
    expect(all.length).toBeGreaterThan(50)
    expect(readable.toSorted()).toEqual(describing)
  })

  test('finds descriptions of the views only, and no database, grant, process or completion of others', async () => {
    const ours = (database: string) => `WHERE lower(${database}) NOT IN ('system', 'information_schema')`
    const described = publicViews.map(name => `crowdfunding\t${name}`)
    for (const query of [
      `SELECT database, name FROM system.tables ${ours('database')}`,
      `SELECT DISTINCT database, table FROM system.columns ${ours('database')}`,
      `SELECT DISTINCT table_schema, table_name FROM information_schema.columns ${ours('table_schema')}`,
    ])
      expect((await answerTo(query)).trim().split('\n').toSorted()).toEqual(described)
    expect(await answerTo('SHOW DATABASES')).toBe('crowdfunding\n')
    expect(await answerTo('SHOW TABLES FROM pledgeview_read_1')).toBe('')
    expect(await answerTo('SHOW COLUMNS FROM campaigns FROM pledgeview_read_1')).toBe('')
    expect(await answerTo('SHOW GRANTS')).toBe('GRANT SELECT ON crowdfunding.* TO analyst\n')
    const private_ =
      "match(word, '^(pledgeview|campaign_ledger|api_keys|creator_id|backer_hash|secret_hash|fold_id)')"
    expect(await answerTo(`SELECT word FROM system.completions WHERE ${private_}`)).toBe('')
  })

  test('gets nothing from any table function that ClickHouse has, whatever its arguments', async () => {
    const functions = await opened.tables.rows<{ name: string }>({
      query: 'SELECT name FROM system.table_functions',
    })
    const answered = new Set<string>()
    for (const { name } of functions) {
      for (const form of argumentForms) {
        const query = inPlace(`SELECT * FROM ${name}(${form}) LIMIT 1`)
        const { status, text } = await askAsAnalyst(url, query)
        if (status === 200) answered.add(name)
        // An error quotes the query, which has no secret.
        expect(text, query).not.toContain(secret)
      }
    }
    expect(functions.length).toBeGreaterThan(80)
    expect([...answered].toSorted()).toEqual(harmless)
    expectUntouched()
  })

  test.each(Object.entries(refusedQueries))('is refused %s', async (_, queries) => {
    // Constraints do not stop a query from resetting a setting to ClickHouse's own default. That must not help either.
    const resets =
      'allow_ddl = DEFAULT, workload = DEFAULT, format_schema = DEFAULT, format_template_row = DEFAULT'
    for (const query of queries.map(inPlace)) {
      await expectRefused(query)
      if (/^SELECT/.test(query) && !/SETTINGS|OUTFILE/.test(query))
        await expectRefused(`${query} SETTINGS ${resets}`)
    }
    expect(await answerTo('SELECT count() FROM crowdfunding.campaigns')).toBe(`${campaigns}\n`)
  })

  describe.each(waysToSet)('with a setting %s', (_, set) => {
    test.each([
      ["format_template_row = 'FOLDER/template.txt'", "SELECT formatRow('Template', 1)"],
      ["format_template_resultset = 'FOLDER/template.txt'", "SELECT formatRow('Template', 1)"],
      ["format_schema = 'FOLDER/schema:M'", "SELECT formatRow('Protobuf', 'x' AS a)"],
      ["format_schema = 'schema:M'", "SELECT formatRow('ProtobufSingle', 'x' AS a)"],
      [
        "format_schema_source = 'query', format_schema = 'SELECT 1'",
        "SELECT formatRow('Protobuf', 'x' AS a)",
      ],
      ["output_format_schema = 'FOLDER/written'", "SELECT formatRow('Protobuf', 'x' AS a)"],
    ])('reads no file: %s', async (setting, select) => {
      await expectRefused(inPlace(set(select, setting)))
    })

    test('calls no schema registry', async context => {
      needs(context, landlock)
      const subject =
        "output_format_avro_confluent_subject = 'a', format_avro_schema_registry_max_retries = 0"
      const registry = `format_avro_schema_registry_url = 'http://PLACE/', ${subject}`
      await expectRefused(inPlace(set("SELECT formatRow('AvroConfluent', 1 AS a)", registry)))
    })
  })

  test.each([
    ['Template', 'format_template_row', 'FOLDER/template.txt'],
    ['Template', 'format_template_resultset', 'FOLDER/template.txt'],
    ['Protobuf', 'format_schema', 'FOLDER/schema:M'],
    ['Protobuf', 'output_format_schema', 'FOLDER/written'],
    ['CSV', 'input_format_record_errors_file_path', 'FOLDER/written'],
  ])(
    'reads and writes no file with the format %s: %s in the URL, or for an external table',
    async (format, name, value) => {
      const sent = { sent_structure: 'a UInt8', sent_format: format, input_format_allow_errors_num: 9 }
      const table = 'no row of this format"\n'
      await expectRefused(`SELECT 'x' AS a FORMAT ${format}`, { parameters: { [name]: inPlace(value) } })
      await expectRefused('SELECT * FROM sent', { parameters: { ...sent, [name]: inPlace(value) }, table })
      await expectRefused(`SELECT * FROM sent SETTINGS ${name} = '${inPlace(value)}'`, {
        parameters: sent,
        table,
      })
    },
  )

  test('may send an external table, but none for which ClickHouse opens a connection', async context => {
    const answer = await askAsAnalyst(url, 'SELECT a FROM sent', {
      parameters: { sent_structure: 'a String', sent_format: 'CSV' },
      table: 'x\n',
    })
    expect(answer).toMatchObject({ status: 200, text: 'x\n' })
    needs(context, landlock)
    const query =
      "SELECT * FROM (SELECT * FROM sent SETTINGS format_avro_schema_registry_url = 'http://PLACE/')"
    const parameters = { sent_structure: 'a String', sent_format: 'AvroConfluent' }
    await expectRefused(inPlace(query), { parameters, table: '\0\0\0\0\x01a' })
  })

  test('changes nothing in a session that is no longer read-only', async () => {
    // ClickHouse lets a query reset a setting that it may not change. So the analyst's rights must depend on grants alone.
    for (const query of [
      "INSERT INTO pledgeview.api_keys (api_key) VALUES ('k')",
      'DROP TABLE pledgeview_read_1.campaigns',
    ]) {
      // One of its own: ClickHouse answers a request a moment before it gives up the session.
      const parameters = { session_id: randomUUID() }
      expect(await askAsAnalyst(url, 'SET readonly = DEFAULT', { parameters })).toMatchObject({ status: 200 })
      expect((await askAsAnalyst(url, query, { parameters })).text).toContain('ACCESS_DENIED')
    }
  })

  test('stops no merges, although ClickHouse does not refuse it', async () => {
    await askAsAnalyst(url, 'SYSTEM STOP MERGES')
    await opened.tables.run({
      query: 'OPTIMIZE TABLE pledgeview_read_1.campaigns FINAL SETTINGS optimize_throw_if_noop = 1',
    })
  })

  test('ends no query of the program, not even with a query of the same id', async () => {
    const slow = opened.tables.rows({ query: 'SELECT count() FROM numbers(30) WHERE sleepEachRow(0.1) = 0' })
    const own = "query LIKE '%sleepEachRow(0.1)%' AND query NOT LIKE '%processes%'"
    const running = { query: `SELECT query_id FROM system.processes WHERE ${own}` }
    const findRow = async () => (await opened.tables.rows<{ query_id: string }>(running))[0]
    const { query_id } = await vi.waitUntil(findRow, { timeout: 30_000, interval: 10 })
    for (const how of ['ASYNC', 'SYNC', 'TEST'])
      await expectRefused(`KILL QUERY WHERE query_id = '${query_id}' ${how}`)
    await askAsAnalyst(url, 'SELECT 1', { parameters: { query_id, replace_running_query: 1 } })
    expect(await slow).toEqual([{ 'count()': 30 }])
  })

  test.each([
    ...['profile=program', 'readonly=0', 'role=pledgeview', 'allow_ddl=1', 'quota_key=mine&readonly=0'],
    ...["http_response_headers={'Content-Type':'text/html'}", 'session_id=mine&readonly=0'],
  ])('becomes no other user, and no larger one, with a parameter: %s', async text => {
    const parameters = Object.fromEntries(new URLSearchParams(text))
    expect((await askAsAnalyst(url, 'SELECT 1', { parameters })).status).not.toBe(200)
  })

  test.each([
    ['session_id=comment&log_comment=x', /log_comment/],
    ['max_query_size=100000000', /max_query_size/],
    ['session_id=long&session_timeout=6', /session.timeout/i],
  ])('holds no session that is large or lives long: %s', async (text, reason) => {
    const parameters = Object.fromEntries(new URLSearchParams(text))
    const answer = await askAsAnalyst(url, 'SELECT 1', { parameters })
    expect(answer.status).not.toBe(200)
    expect(answer.text).toMatch(reason)
  })

  test('cannot make a page of this origin, or a header, with a query', async () => {
    const query =
      "SELECT * FROM (SELECT '<script>' SETTINGS http_response_headers = {'X-Own': 'a', 'Content-Type': 'text/html'})"
    const { headers } = await askAsAnalyst(url, query)
    expect(headers.get('x-own')).toBeNull()
    expect(headers.get('content-type')).not.toContain('html')
  })

  test('reads no file after a restart either, and then, too, no connection is opened, not even with all rights', async context => {
    const calling = inPlace("SELECT * FROM url('http://PLACE/', LineAsString) SETTINGS http_max_tries = 1")
    await opened.clickHouse.kill()
    await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000, interval: 5 }).toBeDefined()
    await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000 }).toBeUndefined()
    await expectRefused(inPlace("SELECT file('FILE')"))
    expect(readdirSync(join(directory.path, 'clickhouse'))).not.toContain('gone')
    needs(context, landlock)
    await expect(askClickHouse(opened.clickHouse, calling)).rejects.toThrow('Permission denied')
    expect(calls).toBe(0)
  })
})

function inPlace(template: string): string {
  return template
    .replaceAll('FILE', join(folder, 'rows.csv'))
    .replaceAll('FOLDER', folder)
    .replaceAll('PLACE', `127.0.0.1:${(listener.address() as AddressInfo).port}`)
}

async function expectRefused(query: string, request: AnalystRequest = {}): Promise<void> {
  const { status, text } = await askAsAnalyst(url, query, request)
  expect(text, query).not.toContain(secret)
  expect(status, `${query}: ${text}`).not.toBe(200)
  if (!request.parameters) {
    const asked = native(query)
    await expect(asked, query).rejects.toMatchObject({ name: 'NativeError' })
    await expect(asked, query).rejects.not.toThrow(secret)
  }
  expectUntouched()
}

/** No new file, no changed file, and no connection. */
function expectUntouched(): void {
  expect(readdirSync(folder).toSorted()).toEqual(Object.keys(files).toSorted())
  for (const [name, text] of Object.entries(files))
    expect(readFileSync(join(folder, name), 'utf8')).toBe(text)
  expect(calls).toBe(0)
}

async function answerTo(query: string): Promise<string> {
  const { status, text } = await askAsAnalyst(url, query)
  expect(status, text).toBe(200)
  return text
}

function native(query: string): Promise<string[]> {
  return askNative({ port: opened.door?.nativePort ?? 0, user: 'analyst', password: '' }, query)
}
