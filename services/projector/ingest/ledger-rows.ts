/**
 * Ledger rows: which parts of an event are stored. Pure.
 *
 * Private data ends here. A campaign that is not public becomes its id and its version, and nothing else. A backer becomes a
 * keyed hash. A pledge that does not count has not even the hash.
 */

import { currencyDigits } from '../../../contracts/events/currencies.ts'
import {
  type ApiKeyState,
  type CampaignState,
  type ChangeEvent,
  countsTowardsTotals,
  isPublicStatus,
  type PledgeState,
} from '../../../contracts/events/event.ts'
import {
  type AccountState,
  type NoticeState,
  portalVersionOf,
  type RemovedNotice,
  versionPartMax,
} from '../../../contracts/events/portal-event.ts'
import { listTextLengthMax, pledgeIdsOf } from '../../../contracts/events/rules.ts'
import { ledgerColumns } from '../../../contracts/tables/campaign-columns.ts'
import { dayMs } from '../../runtime/runtime.ts'
import type { ByteWriter } from '../../tables/clickhouse/byte-writer.ts'
import type { RowEncoder, TableColumn } from '../../tables/clickhouse/row-binary.ts'
import type { Hash64, HashBacker } from './backer-hash.ts'

/** Ranks after every version that an event can have (versions are signed 64-bit). */
export const tombstoneVersion = 18_446_744_073_709_551_615n

/** A deletion is newer than any state. */
export function versionOf({ data }: ChangeEvent): bigint {
  return data === null ? tombstoneVersion : BigInt(data.version)
}

export const pledgeColumns: readonly TableColumn[] = [
  { name: 'campaign_id', type: 'String' },
  { name: 'pledge_id', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'counts', type: 'Bool' },
  { name: 'backer_hash', type: 'UInt64' },
  { name: 'amount_minor', type: 'Int64' },
  { name: 'platform_amount_minor', type: 'Int64' },
  { name: 'reward_id', type: 'String' },
  { name: 'pledged_on', type: 'Date' },
]

export const apiKeyColumns: readonly TableColumn[] = [
  { name: 'api_key', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'is_unrevoked', type: 'Bool' },
  { name: 'account_id', type: 'String' },
  { name: 'integration_name', type: 'String' },
  { name: 'integration_url', type: 'String' },
  { name: 'integration_contact_email', type: 'String' },
  { name: 'secret_hash', type: 'String' },
  { name: 'scopes', type: 'Array(String)' },
  { name: 'issued_at', type: "DateTime64(3, 'UTC')" },
  { name: 'expires_at', type: "Nullable(DateTime64(3, 'UTC'))" },
]

export const accountColumns: readonly TableColumn[] = [
  { name: 'account_id', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'email', type: 'String' },
  { name: 'created_at', type: "DateTime64(3, 'UTC')" },
  { name: 'sessions_valid_from', type: "DateTime64(3, 'UTC')" },
  { name: 'changed_at', type: "DateTime64(3, 'UTC')" },
]

export const noticeColumns: readonly TableColumn[] = [
  { name: 'notice_id', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'rule', type: 'LowCardinality(String)' },
  { name: 'status', type: 'LowCardinality(String)' },
  { name: 'account_id', type: 'String' },
  { name: 'recipient', type: 'String' },
  { name: 'subject', type: 'String' },
  { name: 'text', type: 'String' },
  { name: 'created_at', type: "DateTime64(3, 'UTC')" },
  { name: 'sent_at', type: "Nullable(DateTime64(3, 'UTC'))" },
  { name: 'changed_at', type: "DateTime64(3, 'UTC')" },
]

/** A row: one value for each column, in the form that row-binary.ts accepts. */
export type Row = readonly unknown[]

/** A row for `ledgerColumns`. If `campaign` is null, it is a tombstone of `campaignId`. */
export function campaignRow(campaignId: string, campaign: CampaignState | null): Row {
  if (campaign === null || !isPublicStatus(campaign.status)) {
    const version = campaign === null ? tombstoneVersion : campaign.version
    return hiddenCampaign.with(idAt, campaignId).with(versionAt, version)
  }
  return ledgerValues.map(read => read(campaign))
}

/** What a column has of a public campaign. */
const ledgerValues: readonly ((campaign: CampaignState) => unknown)[] = ledgerColumns.map(
  ({ name, event = name, default: added }) => {
    if (name === 'is_public') return () => true
    if (name === 'currency_digits') return ({ currency }) => currencyDigits(currency)
    const [field, part] = event.split('.') as [keyof CampaignState, string?]
    if (part === undefined) return campaign => campaign[field] ?? added ?? null
    return campaign => (campaign[field] as Record<string, unknown>)[part]
  },
)

/** A row without content. */
const hiddenCampaign: Row = ledgerColumns.map(({ type }) => {
  if (type.startsWith('Nullable')) return null
  if (type.startsWith('Array')) return []
  if (type === 'Bool') return false
  return /^U?Int|^DateTime64/.test(type) ? 0 : ''
})
const idAt = ledgerColumns.findIndex(({ name }) => name === 'campaign_id')
const versionAt = ledgerColumns.findIndex(({ name }) => name === 'version')

/** A pledge's state under its key, or a tombstone. */
export type PledgeEvent = Extract<ChangeEvent, { type: 'pledge' }>

/**
 * Writes a pledge as `pledgeColumns` have it: by hand, since nearly all rows are pledges. Throws on a key that `faultOf`
 * would have refused.
 */
export function pledgeEncoder(hashBacker: HashBacker): RowEncoder<PledgeEvent> {
  return (out, { key, data: pledge }) => {
    if (pledge === null) {
      const ids = pledgeIdsOf(key)
      if (!ids) throw new TypeError(`not a pledge's key: ${key}`)
      writeUncounted(out, ids.campaign_id, ids.pledge_id, tombstoneVersion)
    } else if (countsTowardsTotals(pledge.status)) {
      writeCounted(out, pledge, hashBacker(pledge.backer_id))
    } else {
      writeUncounted(out, pledge.campaign_id, pledge.pledge_id, pledge.version)
    }
  }
}

function writeCounted(out: ByteWriter, pledge: PledgeState, backerHash: Hash64): void {
  out.string(pledge.campaign_id)
  out.string(pledge.pledge_id)
  out.uint64(pledge.version)
  out.uint8(1)
  out.uint64Halves(backerHash.low, backerHash.high)
  out.int64(pledge.amount_minor)
  out.int64(pledge.platform_amount_minor)
  out.string(pledge.reward_id ?? '')
  out.uint16(dayOf(pledge.changed_at))
}

/** A day as the type Date has it: days since 1970, and no day after 2149. */
export function dayOf(ms: number): number {
  return Math.min(Math.max(Math.floor(ms / dayMs), 0), 0xffff)
}

/** Keeps neither backer nor amount nor day. */
function writeUncounted(
  out: ByteWriter,
  campaignId: string,
  pledgeId: string,
  version: number | bigint,
): void {
  out.string(campaignId)
  out.string(pledgeId)
  out.uint64(version)
  out.uint8(0)
  out.uint64Halves(0, 0)
  out.int64(0)
  out.int64(0)
  out.string('')
  out.uint16(0)
}

/**
 * A row for `apiKeyColumns`. A deleted key keeps no address and no hash. A revoked key may have texts of any length, because no revocation
 * is rejected. It keeps of them what an active key may have.
 */
export function apiKeyRow(key: string, apiKey: ApiKeyState | null): Row {
  if (apiKey === null) {
    return [key, tombstoneVersion, false, '', '', '', '', '', [], 0, null]
  }
  const { integration } = apiKey
  return [
    key,
    apiKey.version,
    apiKey.status === 'ACTIVE',
    apiKey.account_id,
    bounded(integration.name),
    bounded(integration.url),
    bounded(integration.contact_email),
    bounded(apiKey.secret_hash),
    apiKey.scopes.join(',').length > listTextLengthMax ? [] : apiKey.scopes,
    apiKey.issued_at ?? apiKey.changed_at,
    apiKey.expires_at,
  ]
}

function bounded(text: string): string {
  return text.length > listTextLengthMax ? '' : text
}

/** A row for `accountColumns`. */
export function accountRow(account: AccountState): Row {
  const { account_id, version, email, created_at, sessions_valid_from, changed_at } = account
  return [account_id, version, email, created_at, sessions_valid_from, changed_at]
}

/** A row for `noticeColumns`. */
export function noticeRow(notice: NoticeState): Row {
  return [
    notice.notice_id,
    portalVersionOf({ type: 'notice', data: notice }),
    notice.rule,
    notice.status,
    notice.account_id ?? '',
    notice.recipient,
    notice.subject,
    notice.text,
    notice.created_at,
    notice.sent_at,
    notice.changed_at,
  ]
}

/** A row for `noticeColumns`: nothing of the notice is left. */
export function removedNoticeRow({ notice_id, at }: RemovedNotice): Row {
  const time = Math.min(Math.max(at, 0), versionPartMax)
  return [notice_id, tombstoneVersion, '', '', '', '', '', '', time, null, time]
}
