/** Campaigns that are hard to read exactly, in the fold's form, and the same campaigns as an analyst should see them. */
import { campaignRow } from '../support/query/tables.ts'
import type { Row } from './clients.ts'

const dates = ['launch_date', 'end_date', 'created_at', 'updated_at']
// In the model, but not in the views.
const privateColumns = ['creator_id', 'content_hash', 'is_deleted', 'fold_id']

const rewards = [
  reward({ reward_id: 'first', amount: '0.0001', quantity_available: 10, quantity_remaining: 0 }),
  reward({
    reward_id: 'second',
    amount: '1234567890123456789012345678901234.5678',
    title: 'It\'s \\ "quoted"',
  }),
]

/** Rows of the model's campaigns. */
export const written: readonly Row[] = [
  // An older row, which the next one replaces.
  row('amber', { fold_id: 1, title: 'Before', status: 'CANCELLED' }),
  row('amber', {
    category: 'Games',
    currency: 'EUR',
    pledged_platform_amount: '275.55',
    tags: ["it's", '漫画', '', '\t"\\'],
    subtitle: '',
    location: 'Zürich',
    is_staff_pick: true,
    rewards,
  }),
  row('dinar', {
    category: 'Games',
    currency: 'KWD',
    status: 'FAILED',
    goal_amount: '5000.125',
    pledged_amount: '1234.567',
    pledged_platform_amount: '4020.1234',
    pledge_count: 3,
    uses_ai: true,
    launch_date: '1969-07-20 20:17:40.001',
    // clickhouse-go reads times as 64-bit nanoseconds, which end in 2262.
    end_date: '2261-12-31 23:59:59.999',
  }),
  row('huge', {
    category: 'Art',
    status: 'CANCELLED',
    goal_amount: '9999999999999999999999999999999999.9999',
    pledged_amount: '0.0001',
    pledged_platform_amount: '123456789012345678901234567890.1234',
    percent_funded: '999999999999999999999999999999999999.99',
    backer_count: '18446744073709551615',
    pledge_count: '9007199254740993',
    launch_date: null,
    end_date: null,
  }),
  row('yen', {
    category: 'Comics',
    currency: 'JPY',
    status: 'FUNDED',
    title: '日本の漫画 🎲 it\'s \\ "q"',
    goal_amount: '1500000',
    pledged_amount: '1500001',
    pledged_platform_amount: '10000.07',
    pledge_count: 200,
    description: 'One line,\nanother \\ one.',
    created_at: '2025-12-31 23:59:59.999',
  }),
  // A campaign that is no longer public.
  row('zero', { fold_id: 1 }),
  row('zero', { is_deleted: 1 }),
]

/** What an analyst should see. */
export const expected = written
  .filter(row => row.fold_id === 2 && row.is_deleted === 0)
  .map(row => {
    const columns = Object.entries(row).filter(([name]) => !privateColumns.includes(name))
    return exact(
      Object.fromEntries(columns.map(([name, value]) => [name, dates.includes(name) ? iso(value) : value])),
    )
  })

const floatColumns: Readonly<Record<string, string>> = {
  goal: 'goal_amount',
  pledged: 'pledged_amount',
  pledged_platform: 'pledged_platform_amount',
  percent: 'percent_funded',
}

/** Rows in one form, without the floating-point columns. */
export function exactColumns(rows: readonly Row[]): Row[] {
  const isExact = (name: string) => !(name in floatColumns) && name !== 'goal_platform'
  return rows.map(row => exact(Object.fromEntries(Object.entries(row).filter(([name]) => isExact(name)))))
}

/** The floating-point columns that are missing, or another number than the exact column. */
export function wrongFloats(rows: readonly Row[], names: readonly string[]): string[] {
  return names.filter(name => !rows.every(row => isNear(row[name], row[floatColumns[name] ?? ''])))
}

/** Whether 15 digits are the same. ClickHouse may round the last bit of a number with more digits in another way. */
function isNear(float: unknown, exact: unknown): boolean {
  const [one, other] = [Number(float ?? 'none'), Number(exact)]
  return Math.abs(one - other) <= Math.abs(other) * 1e-15
}

/**
 * A program's output in one form: decimals without trailing zeros, times as JavaScript writes them in UTC. A time without a
 * zone is not changed.
 */
export function exact<T>(value: T): T
export function exact(value: unknown): unknown {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') {
    if (/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(value)) return new Date(value).toISOString()
    return /^\d+\.\d+$/.test(value) ? value.replace(/\.?0+$/, '') : value
  }
  if (Array.isArray(value)) return value.map(item => exact(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, exact(item)]))
}

function row(id: string, fields: Row): Row {
  return { ...campaignRow(id), fold_id: 2, ...fields }
}

function reward(fields: Row): Row {
  return {
    title: 'A reward',
    description: '',
    quantity_available: null,
    quantity_claimed: 3,
    quantity_remaining: null,
    ...fields,
  }
}

/** A time as ClickHouse reads it, in ISO 8601. */
function iso(time: unknown): unknown {
  return typeof time === 'string' ? `${time.replace(' ', 'T')}Z` : time
}
