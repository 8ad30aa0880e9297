/**
 * `npm run example:postgres`: the road from a database, on this machine. It runs Postgres, Debezium on Kafka Connect, Kafka, ClickHouse,
 * Redis, a projector and a query service. It changes rows, waits until the API shows each change, and prints how long that took.
 *
 * The files in contracts/events/postgres do the work. Ctrl-C and SIGTERM stop everything and remove its data.
 */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { deploy } from '../deployment/deployment.ts'
import { localServices, startLocalServices } from '../deployment/local-services.ts'
import { headerFlags, issueCredentials } from '../events/kickstarter.ts'
import { connectRequirement, startConnect } from './connect.ts'
import { type Postgres, postgresProgram, startPostgres } from './postgres.ts'

const files = fileURLToPath(new URL('../../../contracts/events/postgres/', import.meta.url))
const changes = 50
// Only a hang takes this long.
const visibleMsMax = 60_000

/** A campaign with one pledge, as the platform writes them. */
const rows = `
INSERT INTO creator VALUES ('u1', 'Studio Lantern', 'https://platform.example/u/lantern');
INSERT INTO campaign (campaign_id, creator_id, status, slug, title, category, currency, goal, project_type, launched_at, ends_at)
VALUES ('c1', 'u1', 'LIVE', 'paper-lanterns', 'Paper lanterns', 'Crafts', 'EUR', 500, 'GENERAL', now(), now() + interval '30 days');
INSERT INTO tier VALUES ('c1', 't1', 'One lantern', 'Folded for you.', 25, 100);
INSERT INTO pledge VALUES ('p0', 'c1', 'b0', 'ACTIVE', 25, 25, 't1');`

const helpText = `npm run example:postgres

Runs the road from a database on this machine: Postgres, Debezium, Kafka, ClickHouse, Redis, a projector and a query service, on free
ports. It changes rows, waits until the API shows each change, and prints how long that took. Then it prints lines to try by hand.
Ctrl-C stops everything and removes its data. It has no options.
`
const say = (text: string) => void process.stderr.write(`${text} ...\n`)

async function main(interrupted: Promise<unknown>): Promise<void> {
  say('checking that Postgres, Kafka, Debezium and Redis are installed (the first time this downloads jars)')
  const all = [postgresProgram, await connectRequirement(), await localServices()]
  const missing = all.find(({ isMet }) => !isMet)
  if (missing) {
    process.stderr.write(`${missing.reason}\n`)
    process.exitCode = 1
    return
  }

  const stops: (() => Promise<unknown>)[] = []
  async function startAll(): Promise<void> {
    const services = await startLocalServices({ onProgress: say })
    stops.push(services.stop)
    say('starting Postgres, with a platform that has rows')
    const postgres = await startPostgres()
    stops.push(postgres.stop)
    await postgres.runFile(`${files}platform.sql`)
    await postgres.run(rows)

    say('creating the topics and the tables; starting a projector and a query service')
    const deployment = await deploy(services.addresses, { PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000' })
    stops.push(deployment.stop)
    await deployment.startProjector()
    const { apiUrl } = await deployment.startQuery()
    const headers = await issueCredentials(deployment.command, 'a')

    say('running outbox.sql and state.sql, starting Debezium, publishing the rows that were there')
    await postgres.runFile(`${files}outbox.sql`)
    await postgres.runFile(`${files}state.sql`)
    const connect = await startConnect(postgres, services.addresses.kafka)
    stops.push(connect.stop)
    await postgres.run('CALL pledgeview.backfill()')
    await untilBackers(apiUrl, headers, 1)

    say(`pledging ${changes} times, one after another`)
    const ms = await timeChanges(postgres, apiUrl, headers)
    const at = (share: number) => `${Math.round(ms[Math.floor(share * (ms.length - 1))] ?? 0)} ms`
    const psql = Object.entries(postgres.environment).map(([name, value]) => `${name}='${value}'`)
    process.stdout.write(`
From a commit in Postgres to the API, ${changes} pledges: p50 ${at(0.5)}, p99 ${at(0.99)}.

Change a row, wait a few seconds, and look at it. An answer is kept for 60 s, also one from before the change:

  ${psql.join(' ')} psql -c "UPDATE campaign SET title = 'Lanterns' WHERE campaign_id = 'c1'"
  curl -s ${headerFlags(headers)} '${apiUrl}/projects/paper-lanterns'

Ctrl-C stops everything and removes its data.
`)
  }
  try {
    await Promise.race([interrupted, startAll().then(() => interrupted)])
  } finally {
    say('stopping')
    for (const stop of stops.toReversed()) await stop()
  }
}

/** Milliseconds from each commit to the first answer that shows it, sorted. */
async function timeChanges(
  postgres: Postgres,
  apiUrl: string,
  headers: Record<string, string>,
): Promise<number[]> {
  const all: number[] = []
  for (let n = 1; n <= changes; n++) {
    await postgres.run(`INSERT INTO pledge VALUES ('p${n}', 'c1', 'b${n}', 'ACTIVE', 25, 25, 't1')`)
    const committedAt = performance.now()
    await untilBackers(apiUrl, headers, n + 1)
    all.push(performance.now() - committedAt)
  }
  return all.toSorted((a, b) => a - b)
}

let asked = 0

/** Resolves when the list shows so many backers. Each time it asks for another list, so that no answer comes from a cache. */
async function untilBackers(apiUrl: string, headers: Record<string, string>, backers: number): Promise<void> {
  const deadline = performance.now() + visibleMsMax
  for (;;) {
    const since = new Date(Date.UTC(2020, 0, 1) + asked++).toISOString()
    const response = await fetch(`${apiUrl}/projects?updated_since=${since}`, { headers })
    const body = (await response.json()) as { data?: { backer_count: number }[] }
    if (body.data?.[0]?.backer_count === backers) return
    if (performance.now() > deadline) throw new Error(`the API does not show it: ${JSON.stringify(body)}`)
    await delay(20)
  }
}

const unknown = process.argv[2]
if (unknown === undefined) {
  await main(Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]))
  // What was starting when it was interrupted ends with this process.
  process.exit()
} else {
  process.stderr.write(helpText)
  process.exitCode = unknown === '--help' ? 0 : 2
}
