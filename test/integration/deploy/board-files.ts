/** The Grafana boards of `deploy/boards`, and their queries as Grafana sends them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const boardsFolder = fileURLToPath(new URL('../../../deploy/boards/', import.meta.url))
const folder = join(boardsFolder, 'dashboards')

export interface Panel {
  id: number
  title: string
  datasource?: { type: string; uid: string }
  targets?: { rawSql?: string; queryType?: string; expr?: string; datasource: { uid: string } }[]
}

export interface Board {
  /** The name of its file. */
  name: string
  json: {
    uid: string
    panels: Panel[]
    templating: { list: { name: string; query: string | { query: string }; datasource: { uid: string } }[] }
  }
}

export const boards: readonly Board[] = readdirSync(folder).map(name => ({
  name,
  json: JSON.parse(readFileSync(join(folder, name), 'utf8')) as Board['json'],
}))

export interface PanelQuery {
  /** The board and the panel, for the name of a test. */
  name: string
  text: string
  isTimeSeries: boolean
}

/** The SQL of all panels and variables, as it is in the files. */
export function sqlQueries(): PanelQuery[] {
  return boards.flatMap(({ name, json: { panels, templating } }) => [
    ...templating.list.flatMap(({ name: variable, query }) =>
      typeof query === 'string'
        ? [{ name: `${name}: the variable ${variable}`, text: query, isTimeSeries: false }]
        : [],
    ),
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ rawSql, queryType }) =>
        rawSql === undefined
          ? []
          : [{ name: `${name}: ${title}`, text: rawSql, isTimeSeries: queryType === 'timeseries' }],
      ),
    ),
  ])
}

/** The PromQL of all panels and variables, as it is in the files. */
export function promQueries(): Omit<PanelQuery, 'isTimeSeries'>[] {
  return boards.flatMap(({ name, json: { panels, templating } }) => [
    ...templating.list.flatMap(({ name: variable, query }) =>
      typeof query === 'object' ? [{ name: `${name}: the variable ${variable}`, text: query.query }] : [],
    ),
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr }) => (expr === undefined ? [] : [{ name: `${name}: ${title}`, text: expr }])),
    ),
  ])
}

/**
 * The SQL as Grafana's ClickHouse plugin sends it: `$__dateFilter(column)` is the range of days that is shown, and
 * `${name:sqlstring}` are the chosen values in quotes. Throws if anything is left that it does not know.
 */
export function expandSql(
  text: string,
  { from, to, variables }: { from: string; to: string; variables: Record<string, readonly string[]> },
): string {
  const expanded = text
    .replace(
      /\$__dateFilter\(([\w.]+)\)/g,
      (_, column: string) => `${column} >= toDate('${from}') AND ${column} <= toDate('${to}')`,
    )
    .replace(/\$\{(\w+):sqlstring\}/g, (_, name: string) => {
      const values = variables[name]
      if (!values) throw new Error(`there is no variable ${name}`)
      return values.map(value => `'${value.replaceAll("'", "''")}'`).join(',')
    })
  if (expanded.includes('$')) throw new Error(`not expanded: ${expanded}`)
  return expanded
}

/** The PromQL as Grafana sends it. */
export function expandPromQl(text: string): string {
  return text.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*')
}
