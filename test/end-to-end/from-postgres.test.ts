/**
 * The road from a database that contracts/events/from-a-database.md describes, with its own files: a platform's tables in Postgres, an
 * outbox written by triggers, Debezium on Kafka Connect, and the projector. What the views say is compared with the truth.
 *
 * PLEDGEVIEW_TEST_CAMPAIGNS=9999 takes the whole Kickstarter table.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import type { Tables } from '../../services/tables/port.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import type { LocalServices } from '../support/deployment/local-services.ts'
import type { ServiceProcess } from '../support/deployment/service-process.ts'
import {
  generatedKickstarter,
  projectionStatus,
  type Truth,
  untilDrained,
} from '../support/events/kickstarter.ts'
import { expectTrueViews } from '../support/events/kickstarter-answers.ts'
import { type Connect, connectRequirement, startConnect } from '../support/postgres/connect.ts'
import { type Postgres, postgresProgram, startPostgres } from '../support/postgres/postgres.ts'
import { kickstarterTable } from '../support/runner/requirements.ts'

const campaignsMax = Number(process.env.PLEDGEVIEW_TEST_CAMPAIGNS ?? 100)
const examples = fileURLToPath(new URL('../../contracts/events/postgres/', import.meta.url))
const applyEvents = fileURLToPath(new URL('../support/postgres/apply-events.sql', import.meta.url))
// Only a hang takes this long. The whole table takes 20 minutes on a busy machine with two cores.
const msMax = campaignsMax > 1_000 ? 3_600_000 : 1_200_000
vi.setConfig({ testTimeout: msMax })
const { views } = defaultDatabases

let services: LocalServices
let deployment: Deployment
let postgres: Postgres
let connect: Connect
let tables: Tables
let truth: Truth
let lines = 0
let projector: ServiceProcess

useLocalDeployment({
  also: async () =>
    [kickstarterTable, postgresProgram].find(({ isMet }) => !isMet) ?? (await connectRequirement()),
  prepare: async local => {
    ;({ services, deployment } = local)
    postgres = await startPostgres()
    tables = openTables(settingsFor(services.clickHouse))
    const generated = await generatedKickstarter(campaignsMax)
    truth = generated.truth
    await postgres.runFile(`${examples}platform.sql`)
    await postgres.runFile(applyEvents)
    // No line has the bytes 1 and 2, so each is one value of one column.
    await postgres.run(
      `\\copy event (body) FROM '${generated.eventsFile}' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')\n` +
        'SELECT read_events()',
    )
    lines = Number(await postgres.run('SELECT max(line) FROM event'))
  },
  msMax,
})

afterAll(async () => {
  await connect?.stop()
  await tables?.close()
  await postgres?.stop()
})

/** Lets the platform live through a part of the events, 0 to 1. */
async function live(from: number, to: number): Promise<void> {
  await postgres.run(`SELECT apply_events(${Math.floor(from * lines)}, ${Math.floor(to * lines)})`)
}

test('a platform that has rows already, and changes them while Connect and the projector are killed, comes out equal to the truth', async () => {
  // Before anybody thought of Pledgeview.
  await live(0, 0.4)
  await postgres.runFile(`${examples}outbox.sql`)
  await postgres.runFile(`${examples}state.sql`)
  // Nobody reads yet: Postgres keeps it in its write-ahead log.
  await live(0.4, 0.5)
  connect = await startConnect(postgres, services.addresses.kafka)
  projector = await deployment.startProjector()
  const backfill = postgres.run('CALL pledgeview.backfill()')
  await live(0.5, 0.6)
  await connect.kill()
  await live(0.6, 0.7)
  await backfill
  await connect.restart()
  await projector.stop('SIGKILL')
  await live(0.7, 0.9)
  projector = await deployment.startProjector()
  await live(0.9, 1)
  await untilProjected()
  await expectTrueViews(tables, truth)
  expect((await projectionStatus(projector)).projector.rejects).toBe(0)
  expect(await postgres.run('SELECT count(*) FROM pledgeview.outbox')).toBe('0')
  // The order of the log alone would give the same tables. A rebuild and compaction need a version of its own for each state.
  // A killed Connect or projector sends a state again: the same row, written twice, is one state.
  const { ledger } = defaultDatabases
  const states = ['campaign_ledger', 'pledge_ledger'].map(
    table => `SELECT DISTINCT version, toString(tuple(*)) AS state FROM ${ledger}.${table}`,
  )
  expect(
    await tables.rows({
      query: `SELECT version, count() AS states FROM (${states.join(' UNION ALL ')}) GROUP BY version HAVING states > 1`,
    }),
  ).toEqual([])
})

test("what is deleted in the database is gone, with its pledges, also under its old key; a new tier and a creator's new name are shown", async () => {
  const backed = Object.entries(truth.campaigns).filter(([, { backer_count }]) => backer_count > 0)
  const [kept = '', gone = '', other = ''] = backed.map(([id]) => id)
  expect(other).not.toBe('')
  // A role of the platform has no rights on the outbox.
  await postgres.runAsAdmin('CREATE ROLE app ROLE platform')
  await postgres.run(`
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app;
    SET ROLE app;
    DELETE FROM campaign WHERE campaign_id = '${gone}';
    INSERT INTO tier VALUES ('${kept}', 'r_new', 'A new tier', 'd', 12.5, 7);
    UPDATE creator SET name = 'A new name' WHERE creator_id = (SELECT creator_id FROM campaign WHERE campaign_id = '${kept}');
    UPDATE pledge SET campaign_id = '${other}', pledge_id = 'moved' WHERE ctid =
      (SELECT ctid FROM pledge WHERE campaign_id = '${kept}' AND status IN ('ACTIVE', 'COLLECTED') LIMIT 1);
    DELETE FROM pledge WHERE campaign_id = '${kept}';`)
  await untilProjected()
  const rows = await tables.rows({
    query: `SELECT campaign_id, backer_count, pledged_amount, creator_name,
        (SELECT quantity_available FROM ${views}.rewards WHERE campaign_id = '${kept}' AND reward_id = 'r_new') AS quantity
      FROM ${views}.campaigns WHERE campaign_id IN ('${kept}', '${gone}')`,
  })
  expect(rows).toEqual([
    { campaign_id: kept, backer_count: 0, pledged_amount: 0, creator_name: 'A new name', quantity: 7 },
  ])
})

test('a campaign that is inserted while its creator changes is shown with the new name', async () => {
  const [like = ''] = Object.keys(truth.campaigns)
  const creator = `creator_id = (SELECT creator_id FROM campaign WHERE campaign_id = '${like}')`
  const renamed = postgres.run(
    `BEGIN; UPDATE creator SET name = 'Renamed' WHERE ${creator}; SELECT pg_sleep(3); COMMIT;`,
  )
  const isRenaming = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
  await vi.waitFor(async () => expect(await postgres.run(isRenaming)).toBe('1'), { timeout: 30_000 })
  const changes = '{"campaign_id": "beside", "slug": "beside"}'
  await postgres.run(
    `INSERT INTO campaign SELECT (jsonb_populate_record(c, '${changes}')).* FROM campaign AS c WHERE campaign_id = '${like}'`,
  )
  await renamed
  await untilProjected()
  const query = `SELECT DISTINCT creator_name FROM ${views}.campaigns WHERE campaign_id IN ('${like}', 'beside')`
  expect(await tables.rows({ query })).toEqual([{ creator_name: 'Renamed' }])
})

test('a pledge that a trigger of the platform changes at once counts as it is in the end', async () => {
  const [id = ''] = Object.keys(truth.campaigns)
  const query = `SELECT pledged FROM ${views}.campaigns WHERE campaign_id = '${id}'`
  await untilProjected()
  const [before] = await tables.rows<{ pledged: number }>({ query })
  // Triggers of one event run in the order of their names.
  await postgres.run(`
    CREATE FUNCTION add_tip() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN UPDATE pledge SET amount = 7 WHERE (campaign_id, pledge_id) = (NEW.campaign_id, NEW.pledge_id); RETURN NULL; END';
    CREATE TRIGGER add_tip AFTER INSERT ON pledge FOR EACH ROW EXECUTE FUNCTION add_tip();
    INSERT INTO pledge VALUES ('tipped', '${id}', 'b', 'ACTIVE', 5, 5);
    DROP FUNCTION add_tip() CASCADE;`)
  await untilProjected()
  const [after] = await tables.rows<{ pledged: number }>({ query })
  expect(Number(after?.pledged) - Number(before?.pledged)).toBeCloseTo(7)
})

test('state.sql may run again; its lines are valid events; a TRUNCATE, a state that is null and REPEATABLE READ are refused', async () => {
  await postgres.runFile(`${examples}state.sql`)
  const lines = await postgres.run('SELECT line FROM pledgeview.lines LIMIT 1000')
  const directory = mkdtempSync(join(tmpdir(), 'lines-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const { code, stderr } = await deployment.command(['events', 'append', '-', '--data-dir', directory], lines)
  expect(code, stderr).toBe(0)
  const repeatable = 'BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE campaign SET title = title; COMMIT;'
  await expect(postgres.run(repeatable)).rejects.toThrow('REPEATABLE READ')
  expect(
    await postgres.run("SELECT pledgeview.minor(5000, NULL) IS NULL, pledgeview.minor(5000, 'JPY')"),
  ).toMatch(/^t\W5000$/)
  await expect(postgres.run('TRUNCATE pledge')).rejects.toThrow('DELETE its rows')
  await expect(postgres.run("SELECT pledgeview.publish('campaigns', 'c1', NULL)")).rejects.toThrow('is null')
})

/** Changes one campaign at last, and waits until the views show this change and nothing is on its way. */
async function untilProjected(): Promise<void> {
  const mark = `mark ${performance.now()}`
  const marked = Object.keys(truth.campaigns)[0]
  await postgres.run(`UPDATE campaign SET title = '${mark}' WHERE campaign_id = '${marked}'`)
  await vi.waitFor(
    async () => {
      const query = `SELECT title FROM ${views}.campaigns WHERE campaign_id = '${marked}'`
      expect(await tables.rows({ query }), await connect.status()).toEqual([{ title: mark }])
    },
    { timeout: msMax / 4, interval: 500 },
  )
  await untilDrained(projector)
}
