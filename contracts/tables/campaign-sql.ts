/**
 * The parts of the SQL beside this file that come from the list of a campaign's fields (campaign-columns.ts). Pure.
 *
 * `${campaign_fields}` is a whole migration: it adds the columns that earlier tables lack, in the order of the list. What was written before
 * has the type's default in the new columns. It makes no view: it runs for each generation, and `migrate` makes the private views of each
 * again, and the public views of the current one.
 */
import { columns, ledgerColumns } from './campaign-columns.ts'

type Named = readonly { name: string; type: string }[]

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`
const lines = (all: readonly string[]) => all.map(line => `    ${line}`).join(',\n')
const definitions = (all: Named) => lines(all.map(({ name, type }) => `${name} ${type}`))

const updatedAt = { name: 'updated_at', type: "DateTime64(3, 'UTC')" }
const listFields: Named = [...columns.filter(({ shown }) => shown === 'list'), updatedAt]

// An object: rows that were written before a field was added do not have it. LowCardinality is for columns.
const fieldTypes = listFields.map(
  ({ name, type }) => `${name} ${type.replace(/^LowCardinality\((.*)\)$/, '$1')}`,
)
const listJson = `toJSONString(CAST((${listFields.map(({ name }) => name).join(', ')}), ${quoted(`Tuple(${fieldTypes.join(', ')})`)}))`

// No event has a rate. So that 100 * pledged_platform / goal_platform is percent, it is that of the campaign's own pledges. It is
// no part of the content: a pledge for another campaign may change it.
// Not with a window, which would sort whole rows.
const meanRates = `(
        SELECT CAST((groupArray(code), groupArray(rate)), 'Map(String, Float64)')
        FROM
        (
            SELECT currency AS code, toFloat64(sum(pledged_platform_amount)) / toFloat64(sum(pledged_amount)) AS rate
            FROM \${read}.campaigns FINAL
            GROUP BY code
            HAVING sum(pledged_amount) > 0
        )
    )`
const goalPlatform = {
  definition: `goal_platform Nullable(Float64) COMMENT ${quoted('Goal, in major units of the platform currency, at the rate of the pledges of the campaign; without any, at the mean rate of the pledges in its currency (on a cluster, of those on its shard); null if there are none. updated_at does not tell when it changes')}`,
  value: `toFloat64(goal_amount) * if(pledged_amount > 0 AND pledged_platform_amount > 0,
        toFloat64(pledged_platform_amount) / toFloat64(pledged_amount), nullIf(${meanRates}[toString(currency)], 0)) AS goal_platform`,
}

const viewColumns = columns.flatMap(({ name, type, float, comment }) =>
  float === undefined
    ? [`${name} ${type} COMMENT ${quoted(comment)}`]
    : [
        `${name} ${type} COMMENT ${quoted(name === 'percent_funded' ? comment : `${comment}; exact`)}`,
        `${float} Float64 COMMENT ${quoted(`${comment}; ${name} as a floating-point number`)}`,
        ...(float === 'goal' ? [goalPlatform.definition] : []),
      ],
)
const viewValues = columns.flatMap(({ name, float }) => [
  name + (float === undefined ? '' : `, toFloat64(${name}) AS ${float}`),
  ...(float === 'goal' ? [goalPlatform.value] : []),
])

// views/0001-views.sql says why it has a LIMIT.
const view = `CREATE OR REPLACE VIEW \${views}.campaigns
(
${lines([...viewColumns, `${updatedAt.name} ${updatedAt.type} COMMENT 'When something of this row last changed, UTC'`])}
)
SQL SECURITY DEFINER
AS SELECT
${lines([...viewValues, updatedAt.name])}
FROM \${read}.campaigns FINAL
LIMIT 18446744073709551615
COMMENT 'Public campaigns, one row each, as they are now'`

// The texts of a page are JSON, and the tiers too. These go beside them.
const ofDetails = columns.filter(({ name, shown }) => shown === 'detail' && name !== 'rewards')
const commented = ofDetails.map(({ name, type, comment }) => `${name} ${type} COMMENT ${quoted(comment)}`)

const added = (table: string, all: Named) => `ALTER TABLE ${table}
${lines(all.map(({ name, type }, at) => `ADD COLUMN IF NOT EXISTS ${name} ${type}${at === 0 ? '' : ` AFTER ${all[at - 1]?.name}`}`))}`

const parts: Readonly<Record<string, string>> = {
  ledger_columns: definitions(ledgerColumns),
  campaign_columns: definitions(columns),
  list_fields: listJson,
  detail_columns: ofDetails.map(({ name }) => name).join(', '),
  detail_definitions: lines(commented).trimStart(),
  campaigns_view: view,
  campaign_fields: [
    added('${ledger}.campaign_ledger', ledgerColumns),
    added('${read}.campaigns', columns),
    `ALTER TABLE \${read}.campaigns MODIFY COLUMN list_fields String MATERIALIZED ${listJson}`,
  ].join(';\n'),
}

/** Fills the parts into SQL text. */
export function withCampaignFields(sql: string): string {
  return Object.entries(parts).reduce((text, [name, part]) => text.replaceAll(`\${${name}}`, () => part), sql)
}
