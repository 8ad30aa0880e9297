/** The data teams' views as a data contract of the Open Data Contract Standard (contracts/tables/odcs.json). Pure. */
import type { PublicView } from './public-views.ts'

/** The columns that no two rows of a view share. A view that is not here has one row. */
const keys: Readonly<Record<string, readonly string[]>> = {
  campaigns: ['campaign_id'],
  rewards: ['campaign_id', 'reward_id'],
  categories: ['category'],
  campaign_days: ['campaign_id', 'day'],
  category_funding_days: ['category', 'day'],
  funding_days: ['day'],
}

export function dataContract(views: readonly PublicView[], version: string): object {
  return {
    apiVersion: 'v3.1.0',
    kind: 'DataContract',
    id: 'pledgeview-crowdfunding',
    name: 'Pledgeview: the public campaigns of a crowdfunding platform',
    version,
    status: 'active',
    description: {
      purpose: 'Statistics on public campaigns, their reward tiers and their funding by day.',
      usage:
        'Query the views with SQL. With npm start the user is analyst. The views are about a second behind the events, those of the history up to about ten: the column as_of of the view about says how far.',
      limitations:
        'Only public rows, no backer and no single pledge. New columns may be added: name the columns that you need.',
    },
    servers: [
      { server: 'local', type: 'clickhouse', host: '127.0.0.1', port: 8123, database: 'crowdfunding' },
    ],
    schema: views.map(({ name, comment, columns }) => ({
      name,
      physicalName: name,
      physicalType: 'view',
      logicalType: 'object',
      description: comment,
      properties: columns.map(column => ({
        name: column.name,
        ...typeOf(column.type),
        physicalType: column.type,
        ...keyOf(keys[name], column.name),
        description: column.comment,
      })),
    })),
  }
}

function keyOf(key: readonly string[] = [], column: string): object {
  const position = key.indexOf(column) + 1
  if (position === 0) return {}
  return { primaryKey: true, primaryKeyPosition: position, ...(key.length === 1 && { unique: true }) }
}

/** Throws if it does not know the type. */
function typeOf(type: string): object {
  const inner = (of: string) => new RegExp(`^${of}\\((.+)\\)$`).exec(type)?.[1]
  const nullable = inner('Nullable')
  if (nullable !== undefined) return { ...typeOf(nullable), required: false }
  const item = inner('Array')
  if (item !== undefined) return { logicalType: 'array', required: true, items: itemOf(item) }
  return { logicalType: logicalTypeOf(inner('LowCardinality') ?? type), required: true }
}

function itemOf(type: string): object {
  const fields = /^Tuple\((.+)\)$/.exec(type)?.[1]
  if (fields === undefined) return { ...typeOf(type), physicalType: type }
  const properties = fields.split(/, (?=\w+ )/).map(field => {
    const [name = '', ...own] = field.split(' ')
    return { name, ...typeOf(own.join(' ')), physicalType: own.join(' ') }
  })
  return { logicalType: 'object', properties }
}

function logicalTypeOf(type: string): string {
  if (type === 'String') return 'string'
  if (type === 'Bool') return 'boolean'
  if (type === 'Date') return 'date'
  if (/^U?Int\d+$/.test(type)) return 'integer'
  if (/^(Float64|Decimal\(.+\))$/.test(type)) return 'number'
  if (type.startsWith('DateTime64')) return 'timestamp'
  throw new Error(`the data contract does not know the type ${type}`)
}
