/**
 * Proves that an analyst cannot read or write any file of the account that runs ClickHouse. Without measures, this way of
 * running ClickHouse would allow it (services/clickhouse-server/working-directory.ts).
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { type AnalystRequest, askAsAnalyst, waysToSet } from '../../support/analyst.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative } from '../../support/native-protocol.ts'

const secret = randomUUID()
// Read as a CSV row, as a schema or as a template, each file puts the secret into the output.
const files: Readonly<Record<string, string>> = {
  'rows.csv': `${secret},1\n`,
  'schema.proto': `syntax = "proto3"; message M { string a = 1; } // ${secret}\n`,
  'template.txt': [secret, '${0:CSV}\n'].join(' '),
}

describe('an analyst', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables
  let folder: string

  beforeAll(async () => {
    directory = makeTestDirectory()
    folder = mkdtempSync(join(tmpdir(), 'pledgeview-files-'))
    opened = await directory.open()
    // The place where ClickHouse resolves a relative name.
    const userFiles = join(directory.path, 'tables', 'user_files')
    mkdirSync(userFiles, { recursive: true })
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text)
      writeFileSync(join(userFiles, name), text)
    }
  })

  afterAll(async () => {
    await opened.close()
    directory.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  const reading = [
    "SELECT file('FILE')",
    "SELECT file('FILE', 'nothing')",
    "SELECT file('rows.csv')",
    "SELECT file(concat('FILE', ''))",
    "SELECT file(materialize('FILE'))",
    "SELECT * FROM file('FILE')",
    "SELECT * FROM file('FILE', LineAsString)",
    "SELECT * FROM file('FILE', RawBLOB, 'a String')",
    "SELECT * FROM file('rows.csv', CSV, 'a String, b String')",
    "SELECT * FROM file('FOLDER/*')",
    "SELECT * FROM file('FOLDER/{rows,schema}.csv', One)",
    "SELECT _path FROM file('FOLDER/**', One)",
    "DESCRIBE TABLE file('FILE')",
    "SELECT * FROM (SELECT * FROM file('FILE', LineAsString))",
    "SELECT 1 WHERE (SELECT count() FROM file('FILE', LineAsString)) > 0",
    "EXPLAIN SELECT * FROM file('FILE', LineAsString)",
    'SELECT * FROM `FILE`',
    "SELECT * FROM url('file://FILE', LineAsString)",
    "SELECT * FROM fileCluster('default', 'FILE', LineAsString)",
    "SELECT * FROM filesystem('FOLDER')",
    "SELECT * FROM sqlite('FILE', 'a')",
    "SELECT * FROM executable('cat FILE', LineAsString, 'a String')",
    "SELECT * FROM icebergLocal('FOLDER')",
    "SELECT * FROM deltaLakeLocal('FOLDER')",
    "SELECT * FROM paimonLocal('FOLDER')",
    "SELECT * FROM odbc('DSN=FILE', 'a')",
    "SELECT * FROM jdbc('jdbc:sqlite:FILE', 'a')",
    "SELECT * FROM dictionary('FILE')",
    "SELECT dictGet('FILE', 'a', 1)",
    "SELECT catboostEvaluate('FILE', 1)",
    "SELECT * FROM eval('SELECT file(\\'FILE\\')') SETTINGS allow_experimental_eval_table_function = 1",
    "SELECT * FROM viewIfPermitted(SELECT file('FILE') AS a ELSE null('a String'))",
    'SHOW CREATE TABLE `FILE`',
    "CREATE DICTIONARY d (a String) PRIMARY KEY a SOURCE(FILE(PATH 'FILE' FORMAT 'CSV')) LAYOUT(FLAT())",
    "CREATE TABLE t (a String) ENGINE = File(CSV, 'FILE')",
    "CREATE TEMPORARY TABLE t (a String) ENGINE = File(CSV, 'FILE')",
    "CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = 'FOLDER/')",
    "CREATE DATABASE d ENGINE = Filesystem('FOLDER')",
    "CREATE DATABASE d ENGINE = SQLite('FILE')",
    "CREATE NAMED COLLECTION c AS path = 'FILE'",
    "ATTACH TABLE t FROM 'FOLDER' (a String) ENGINE = MergeTree ORDER BY a",
    "RESTORE TABLE crowdfunding.campaigns FROM File('FOLDER')",
    "BACKUP TABLE crowdfunding.campaigns TO File('FOLDER/backup')",
  ]
  const writing = [
    "INSERT INTO FUNCTION file('FOLDER/written.csv', CSV, 'a String') VALUES ('a')",
    "INSERT INTO FUNCTION file('written.csv', CSV, 'a String') SELECT 'a'",
    "INSERT INTO FUNCTION sqlite('FOLDER/written.sqlite', 'a') VALUES (1)",
    "SELECT 1 INTO OUTFILE 'FOLDER/written'",
    "SELECT 1 INTO OUTFILE 'FOLDER/written' TRUNCATE",
    "INSERT INTO FUNCTION null('a String') FROM INFILE 'FILE' FORMAT CSV",
  ]
  // Constraints do not stop a query from resetting a setting to ClickHouse's own default. That must not help either.
  const resets =
    'allow_ddl = DEFAULT, workload = DEFAULT, format_schema = DEFAULT, format_template_row = DEFAULT'

  test.each([...reading, ...writing])('is refused over HTTP: %s', async template => {
    await expectRefused(inPlace(template))
    if (/^SELECT/.test(template) && !/SETTINGS|OUTFILE/.test(template)) {
      await expectRefused(`${inPlace(template)} SETTINGS ${resets}`)
    }
  })

  test.each([...reading, ...writing])('is refused over the native protocol: %s', async template => {
    const refused = askNative(address(), inPlace(template))
    await expect(refused).rejects.toMatchObject({ name: 'NativeError' })
    await expect(refused).rejects.not.toThrow(secret)
    expectUntouched()
  })

  describe('reads no file with a setting', () => {
    const settings: [setting: string, select: string][] = [
      ["format_template_row = 'FOLDER/template.txt'", "SELECT formatRow('Template', 1)"],
      ["format_template_resultset = 'FOLDER/template.txt'", "SELECT formatRow('Template', 1)"],
      ["format_schema = 'FOLDER/schema:M'", "SELECT formatRow('Protobuf', 'x' AS a)"],
      ["format_schema = 'schema:M'", "SELECT formatRow('ProtobufSingle', 'x' AS a)"],
      [
        "format_schema_source = 'query', format_schema = 'SELECT 1'",
        "SELECT formatRow('Protobuf', 'x' AS a)",
      ],
      ["output_format_schema = 'FOLDER/written'", "SELECT formatRow('Protobuf', 'x' AS a)"],
    ]

    describe.each(waysToSet)('%s', (_, set) => {
      test.each(settings)('%s', async (setting, select) => {
        const query = inPlace(set(select, setting))
        await expectRefused(query)
        await expect(askNative(address(), query)).rejects.toMatchObject({ name: 'NativeError' })
      })
    })

    test.each([
      ['Template', { format_template_row: 'FOLDER/template.txt' }],
      ['Template', { format_template_resultset: 'FOLDER/template.txt' }],
      ['Protobuf', { format_schema: 'FOLDER/schema:M' }],
      ['Protobuf', { format_schema: 'schema:M' }],
      ['Protobuf', { format_schema: 'SELECT 1', format_schema_source: 'query' }],
      ['Protobuf', { output_format_schema: 'FOLDER/written' }],
      ['CSV', { input_format_record_errors_file_path: 'FOLDER/written' }],
    ])('in the URL, with the format %s: %j', async (format, parameters) => {
      const there = Object.fromEntries(
        Object.entries(parameters).map(([name, value]) => [name, inPlace(value)]),
      )
      await expectRefused(`SELECT 'x' AS a FORMAT ${format}`, { parameters: there })
      await expectRefused('SELECT * FROM sent', {
        parameters: { sent_structure: 'a String', sent_format: format, ...there },
        table: 'no row of this format"',
      })
    })

    test.each([
      ['Template', { format_template_row: 'FOLDER/template.txt' }],
      ['Protobuf', { format_schema: 'FOLDER/schema:M' }],
      ['CSV', { input_format_record_errors_file_path: 'FOLDER/written' }],
    ])('for an external table on the query, with the format %s: %j', async (format, settings) => {
      const [[name = '', value = ''] = []] = Object.entries<string>(settings)
      await expectRefused(`SELECT * FROM sent SETTINGS ${name} = '${inPlace(value)}'`, {
        parameters: { sent_structure: 'a UInt8', sent_format: format, input_format_allow_errors_num: 9 },
        table: 'no row of this format\n',
      })
    })
  })

  test('may send an external table, which is not a file', async () => {
    const parameters = { sent_structure: 'a String', sent_format: 'CSV' }
    expect(await askAsAnalyst(url(), 'SELECT a FROM sent', { parameters, table: 'x\n' })).toMatchObject({
      status: 200,
      text: 'x\n',
    })
  })

  test('finds no ClickHouse client within the server, which could read files', async () => {
    const response = await fetch(`${url()}/webterminal?user=analyst`)
    expect(response.status).toBe(404)
  })

  test('is refused all of this again after ClickHouse was restarted', async () => {
    await opened.clickHouse.kill()
    await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000, interval: 5 }).toBeDefined()
    await expect.poll(() => opened.clickHouse.outage(), { timeout: 60_000 }).toBeUndefined()
    await expectRefused(inPlace("SELECT file('FILE')"))
    expect(readdirSync(join(directory.path, 'clickhouse'))).not.toContain('gone')
  })

  function url(): string {
    return opened.door?.url ?? ''
  }

  function address() {
    return { port: opened.door?.nativePort ?? 0, user: 'analyst', password: '' }
  }

  function inPlace(template: string): string {
    return template.replaceAll('FILE', join(folder, 'rows.csv')).replaceAll('FOLDER', folder)
  }

  async function expectRefused(query: string, request: AnalystRequest = {}): Promise<void> {
    const { status, text } = await askAsAnalyst(url(), query, request)
    expect(text, query).not.toContain(secret)
    expect(status, `${query}: ${text}`).not.toBe(200)
    expectUntouched()
  }

  /** No new file, and no changed file. */
  function expectUntouched(): void {
    expect(readdirSync(folder).toSorted()).toEqual(Object.keys(files).toSorted())
    for (const [name, text] of Object.entries(files)) {
      expect(readFileSync(join(folder, name), 'utf8')).toBe(text)
    }
  }
})
