/**
 * The digest of the public campaigns (`X-Data-Digest`): their number, and a hash of 64 bits over each `id` and `updated_at`, in which their
 * order does not matter. Each campaign has a number: the first eight bytes of the SHA-256 of `id|updated_at`, as the API shows both. The hash is the
 * sum of these numbers modulo 2^64. So one change of a campaign changes it in one step. The guide tells consumers the same (contracts/api/README.md).
 */
import { hash } from 'node:crypto'

/** The number of a campaign. `updatedAt`: Unix milliseconds. */
export function digestNumber(id: string, updatedAt: number): bigint {
  return BigInt(`0x${hash('sha256', `${id}|${new Date(updatedAt).toISOString()}`, 'hex').slice(0, 16)}`)
}

/** The sum of the rows of a statement, which have `campaign_id` and `updated_at`, as text. */
export const digestSumSql = `toString(sum(reinterpretAsUInt64(reverse(substring(
        SHA256(concat(campaign_id, '|', replaceOne(toString(updated_at), ' ', 'T'), 'Z')), 1, 8)))))`

/** The value of the header. `sum`: the sum of the numbers of these campaigns, which is cut to 64 bits here. */
export function digestText(count: number, sum: bigint): string {
  return `${count}-${BigInt.asUintN(64, sum).toString(16).padStart(16, '0')}`
}
