/**
 * What no analyst may ask (test/integration/clickhouse-server/analyst-rights.test.ts). FILE, FOLDER and PLACE stand for a file, its
 * folder, and a host with a port.
 */

/** By what each would get. */
export const refusedQueries: Readonly<Record<string, readonly string[]>> = {
  'a private table': [
    'SHOW CREATE TABLE pledgeview_read_1.campaigns',
    'DESCRIBE TABLE pledgeview_read_1.campaigns',
    'EXISTS TABLE pledgeview_read_1.campaigns',
    'CHECK TABLE pledgeview_read_1.campaigns',
    'SHOW PROCESSLIST',
    'SHOW CREATE USER pledgeview',
    "SELECT hasColumnInTable('pledgeview_read_1', 'campaigns', 'creator_id')",
    "SELECT joinGet('pledgeview_read_1.campaigns', 'creator_id', '1')",
    "SELECT dictGet('pledgeview_read_1.campaigns', 'creator_id', '1')",
    'SELECT 1 IN pledgeview.api_keys',
    'SELECT (SELECT count() FROM pledgeview.api_keys)',
    'WITH k AS (SELECT * FROM pledgeview.api_keys) SELECT count() FROM k',
    'SELECT 1 UNION ALL SELECT count() FROM pledgeview.api_keys',
    'SELECT creator_id FROM crowdfunding.campaigns',
    'EXPLAIN ESTIMATE SELECT * FROM pledgeview_read_1.campaigns',
    "SELECT * FROM eval('SELECT * FROM pledgeview.api_keys') SETTINGS allow_experimental_eval_table_function = 1",
  ],
  'a file': [
    "SELECT file('FILE')",
    "SELECT file('FILE', 'nothing')",
    "SELECT file(materialize('FILE'))",
    'SELECT * FROM `FILE`',
    "SELECT 1 WHERE (SELECT count() FROM file('FILE', LineAsString)) > 0",
    "SELECT catboostEvaluate('FILE', 1)",
    "CREATE TEMPORARY TABLE t (a String) ENGINE = File(CSV, 'FILE')",
    "CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = 'FOLDER/')",
    "CREATE DATABASE d ENGINE = Filesystem('FOLDER')",
    "ATTACH TABLE t FROM 'FOLDER' (a String) ENGINE = MergeTree ORDER BY a",
    "BACKUP TABLE crowdfunding.campaigns TO File('FOLDER/backup')",
    "INSERT INTO FUNCTION file('FOLDER/written.csv', CSV, 'a String') VALUES ('a')",
    "INSERT INTO FUNCTION sqlite('FOLDER/written.sqlite', 'a') VALUES (1)",
    "SELECT 1 INTO OUTFILE 'FOLDER/written'",
    "INSERT INTO FUNCTION null('a String') FROM INFILE 'FILE' FORMAT CSV",
  ],
  'an address': [
    "SELECT * FROM url('http://PLACE/', LineAsString) SETTINGS workload = DEFAULT",
    "INSERT INTO FUNCTION url('http://PLACE/', 'CSV', 'a String') VALUES ('a')",
    "BACKUP TABLE crowdfunding.campaigns TO S3('http://PLACE/bucket/key')",
    "CREATE DICTIONARY d (a String) PRIMARY KEY a SOURCE(HTTP(URL 'http://PLACE/' FORMAT 'CSV')) LAYOUT(FLAT())",
    "SELECT aiGenerate('a', map('url', 'http://PLACE/')) SETTINGS allow_experimental_ai_functions = 1",
    "SELECT 1 AS a FORMAT AvroConfluent SETTINGS format_avro_schema_registry_url = 'http://PLACE/', output_format_avro_confluent_subject = 'a'",
  ],
  'a change': [
    "INSERT INTO pledgeview.api_keys (api_key) VALUES ('k')",
    "INSERT INTO crowdfunding.campaigns (campaign_id) VALUES ('c')",
    'CREATE TABLE mine (n UInt8) ENGINE = Memory',
    'CREATE TEMPORARY TABLE mine (n UInt8) SETTINGS allow_ddl = DEFAULT',
    'CREATE OR REPLACE VIEW crowdfunding.campaigns AS SELECT * FROM pledgeview.api_keys',
    'CREATE FUNCTION mine AS x -> x',
    'CREATE USER mine',
    'DROP WORKLOAD analyst',
    'DROP TABLE pledgeview_read_1.campaigns',
    'DROP VIEW crowdfunding.campaigns',
    'TRUNCATE TABLE pledgeview_read_1.campaigns',
    'DELETE FROM pledgeview_read_1.campaigns WHERE 1',
    'ALTER TABLE crowdfunding.campaigns MODIFY SQL SECURITY INVOKER',
    'ALTER USER analyst SETTINGS readonly = 0',
    'DETACH TABLE crowdfunding.campaigns',
    'OPTIMIZE TABLE pledgeview_read_1.campaigns FINAL',
    'GRANT SELECT ON pledgeview.* TO analyst',
    'SET ROLE pledgeview',
    'EXECUTE AS pledgeview SELECT 1',
    'SET readonly = 0',
    "SELECT * FROM (SELECT 1 SETTINGS profile = 'program')",
    'SYSTEM SHUTDOWN',
    'SYSTEM RELOAD USERS',
    'SYSTEM STOP LISTEN HTTP',
    'SYSTEM DROP MARK CACHE',
    'KILL MUTATION WHERE 1',
    "KILL QUERY WHERE user = 'pledgeview'",
  ],
}

/** Tables that describe ClickHouse itself, the views, or the analyst. */
export const describing =
  'aggregate_function_combinators collations columns completions contributors current_roles data_type_families database_engines databases dictionary_layouts disk_types enabled_roles formats functions licenses one privileges quota_usage settings table_engines table_functions tables time_zones'
    .split(' ')
    .map(name => `system.${name}`)
/** Table functions that answer. They read nothing but their arguments. */
export const harmless =
  'SQLStandardValues fuzzQuery generateRandom null numbers numbers_mt primes values'.split(' ')
/** Arguments of table functions. */
export const argumentForms = [
  '',
  '1',
  "'pledgeview_read_1', 'campaigns'",
  "'pledgeview_read_1', 'campaigns', 'slug_index'",
  "'pledgeview_read_1', '.*'",
  "'system', 'processes|users'",
  "REGEXP('.*'), 'api_keys'",
  'pledgeview_read_1.campaigns',
  'SELECT * FROM pledgeview_read_1.campaigns',
  "SELECT file('FILE')",
  "'SELECT file(\\'FILE\\')'",
  "'FILE'",
  "'FILE', LineAsString",
  "'FILE', 'CSV', 'a String'",
  "'FOLDER/**', One",
  "'rows.csv', CSV, 'a String'",
  "'default', 'FILE', LineAsString",
  "'file://FILE', LineAsString",
  "'cat FILE', LineAsString, 'a String'",
  "'http://PLACE/', LineAsString",
  "'http://PLACE/bucket/key', NOSIGN, 'CSV', 'a String'",
  "'http://PLACE/bucket/key'",
  "'http://PLACE/', 'a', 'b', 'c', 'ZA==', 'CSV', 'a String'",
  "'PLACE', 'a', 'b', 'c', 'd', 'e String'",
  "'PLACE', 'pledgeview_read_1.campaigns'",
  "'PLACE', 'a', 'b', 'c', 'd'",
  "'PLACE', 'a', 'a String'",
]
