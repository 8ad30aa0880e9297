/** What the page for data teams says of connecting: settings to copy for the usual clients, and the dictionary of the views. Pure. */
import type { PublicView } from '../../tables/schema/public-views.ts'
import { type Html, html } from '../html/html.ts'
import { codeBlock, stack } from '../html/parts.ts'

/** `sqlUrl`: where the SQL port can be reached, if it can. Otherwise the settings have names to fill in. */
export function connectSection(sqlUrl: string | undefined, database: string): Html {
  const address = addressOf(sqlUrl ?? 'https://sql.example/?user=YOUR_USER', database)
  return html`<section aria-labelledby="connect">
<h2 id="connect">Connect</h2>
<p>A user without a password needs none here. With one, add it where your tool keeps secrets.</p>
${clients.map(
  ({ name, caption, note, text }) => html`<details id="connect-${name}"><summary>${caption}</summary>
<p>${note}</p>
${codeBlock({ id: `settings-${name}`, caption: `Settings for ${caption}`, text: text(address) })}</details>
`,
)}</section>`
}

/** Every view and column with its comment. */
export function dictionarySection(views: readonly PublicView[]): Html {
  return html`<section aria-labelledby="views">
<h2 id="views">Views and columns</h2>
<p>These views are the contract: columns may be added, and none changes its name or its type.</p>
${views.map(
  ({
    name,
    comment,
    columns,
  }) => html`<details id="view-${name}"><summary><code>${name}</code> ${comment}</summary>
${stack(
  ['Column', 'Type', 'What it is'],
  columns.map(column => [html`<code>${column.name}</code>`, shortType(column.type), column.comment]),
)}</details>
`,
)}</section>`
}

interface Client {
  name: string
  caption: string
  note: string
  text(address: ReturnType<typeof addressOf>): string
}

// test/clients does the same with the first two, and Grafana's own driver.
const clients: readonly Client[] = [
  {
    name: 'python',
    caption: 'clickhouse-connect (Python, pandas, Arrow)',
    note: 'Install it with pip install clickhouse-connect. query_df gives a pandas frame.',
    text: ({ host, port, isSecure, user, database }) => `import clickhouse_connect

client = clickhouse_connect.get_client(
    host="${host}", port=${port}, secure=${isSecure ? 'True' : 'False'}, username="${user}", database="${database}", tz_mode="aware"
)
for status, count in client.query("SELECT status, count() FROM campaigns GROUP BY status").result_rows:
    print(status, count)`,
  },
  {
    name: 'jdbc',
    caption: 'JDBC (DBeaver, Metabase)',
    note: 'The driver is com.clickhouse:clickhouse-jdbc.',
    text: ({ host, port, isSecure, user, database }) =>
      `jdbc:clickhouse://${host}:${port}/${database}?user=${user}${isSecure ? '&ssl=true' : ''}`,
  },
  {
    name: 'grafana',
    caption: 'Grafana',
    note: 'A file for provisioning/datasources, for the data source plugin of ClickHouse.',
    text: ({ host, port, isSecure, user, database }) => `apiVersion: 1
datasources:
  - name: Pledgeview
    type: grafana-clickhouse-datasource
    jsonData:
      host: ${host}
      port: ${port}
      protocol: http
      secure: ${isSecure}
      username: ${user}
      defaultDatabase: ${database}`,
  },
  {
    name: 'duckdb',
    caption: 'DuckDB',
    note: "A view as a Parquet file, which DuckDB reads. One query shows one moment. DuckDB takes the day of a time in the zone of your machine: first run SET TimeZone = 'UTC'.",
    text: ({ origin, user, database }) => `curl -sf '${origin}/?user=${user}' -o campaigns.parquet \\
  -d 'SELECT * FROM ${database}.campaigns FORMAT Parquet'
duckdb -c "SELECT status, count(*), sum(pledged_platform) FROM 'campaigns.parquet' GROUP BY status"`,
  },
]

function addressOf(sqlUrl: string, database: string) {
  const { origin, hostname, port, protocol, searchParams } = new URL(sqlUrl)
  const isSecure = protocol === 'https:'
  return {
    origin,
    host: hostname,
    port: Number(port) || (isSecure ? 443 : 80),
    isSecure,
    user: searchParams.get('user') ?? 'YOUR_USER',
    database,
  }
}

/** The fields of a reward are rows of a view of their own. */
function shortType(type: string): string {
  return type.replace(/Tuple\(.+\)\)$/, 'Tuple(...))')
}
