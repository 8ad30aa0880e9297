import { describe, expect, test } from 'vitest'
import type {
  ApiKeyState,
  CampaignState,
  PledgeState,
  PledgeStatus,
} from '../../../../contracts/events/event.ts'
import { backerHasher } from '../../../../services/projector/ingest/backer-hash.ts'
import {
  apiKeyColumns,
  apiKeyRow,
  campaignRow,
  ledgerCampaignColumns,
  pledgeColumns,
  pledgeEncoder,
  tombstoneVersion,
} from '../../../../services/projector/ingest/ledger-rows.ts'
import { createEncodedRowWriter } from '../../../../services/tables/row-binary.ts'
import { decodedRow, decodeRows, unsigned64 } from '../../../support/row-binary.ts'
import { apiKeyEvent, pledgeEvent, sampleCampaign, sampleReward } from '../../../support/sample-events.ts'

const hashBacker = backerHasher('ab'.repeat(32))

function samplePledge(state: Partial<PledgeState>): PledgeState {
  const { data } = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', ...state })
  return data as PledgeState
}

describe('the ledger row of a campaign', () => {
  const secret = 'do-not-keep-me'
  const full = sampleCampaign({
    campaign_id: 'a',
    version: 7,
    slug: secret,
    url: secret,
    title: secret,
    subtitle: secret,
    category: secret,
    subcategory: secret,
    location: secret,
    image_url: secret,
    tags: [secret],
    description: secret,
    risks: secret,
    campaign_type: secret,
    project_type: secret,
    creator: { creator_id: secret, name: secret, profile_url: secret, avatar_url: secret },
    rewards: [sampleReward({ reward_id: secret, title: secret, description: secret })],
  })

  const decoded = (id: string, state: CampaignState | null) =>
    decodedRow(ledgerCampaignColumns, campaignRow(id, state))

  test.each(['UNKNOWN', 'DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED'] as const)(
    'that is %s has its id, its version, and nothing else',
    status => {
      const row = decoded('a', { ...full, status })
      expect(textOf(row)).not.toContain(secret)
      expect(textOf(row)).not.toContain(status)
      expect(row).toMatchObject({ campaign_id: 'a', version: 7n, is_public: false })
      expect(row).toEqual(
        decoded('a', { ...sampleCampaign({ campaign_id: 'a', version: 7 }), status: 'DRAFT' }),
      )
    },
  )

  test.each(['LIVE', 'FUNDED', 'FAILED', 'CANCELLED'] as const)('that is %s has everything', status => {
    const row = decoded('a', { ...full, status })
    expect(row).toMatchObject({ is_public: true, status })
    expect(Object.values(row).filter(cell => textOf(cell).includes(secret))).toHaveLength(18)
  })

  test('has a value for each column, for any campaign', () => {
    for (const state of [full, { ...full, status: 'DRAFT' } as CampaignState, null]) {
      expect(campaignRow('a', state)).toHaveLength(ledgerCampaignColumns.length)
    }
    expect(new Set(ledgerCampaignColumns.map(({ name }) => name)).size).toBe(ledgerCampaignColumns.length)
  })

  test('that was deleted ranks after every version, and is not public', () => {
    expect(decoded('a', null)).toMatchObject({
      campaign_id: 'a',
      version: tombstoneVersion,
      is_public: false,
    })
    expect(tombstoneVersion).toBeGreaterThan(2n ** 63n - 1n)
  })

  test('keeps 64-bit numbers exactly', () => {
    const row = decoded('a', { ...full, version: 2n ** 63n - 1n, goal_amount_minor: 2n ** 53n + 1n })
    expect(row).toMatchObject({ version: 2n ** 63n - 1n, goal_amount_minor: 2n ** 53n + 1n })
  })
})

describe('the ledger row of a pledge', () => {
  const decoded = (key: string, data: PledgeState | null) => {
    const writer = createEncodedRowWriter(pledgeEncoder(hashBacker))
    writer.add({ type: 'pledge', key, data })
    const [row] = decodeRows({ columns: pledgeColumns, rows: writer.bytes() })
    return row
  }
  const empty = { counts: false, backer_hash: 0n, amount_minor: 0n, platform_amount_minor: 0n, reward_id: '' }

  test('has a hash instead of the backer', () => {
    const row = decoded('a/p', samplePledge({ backer_id: 'backer-4711', reward_id: 'r' }))
    expect(textOf(row)).not.toContain('4711')
    expect(row).toEqual({
      campaign_id: 'a',
      pledge_id: 'p',
      version: 1n,
      counts: true,
      backer_hash: unsigned64(hashBacker('backer-4711')),
      amount_minor: 1000n,
      platform_amount_minor: 1100n,
      reward_id: 'r',
    })
  })

  test.each<PledgeStatus>(['UNKNOWN', 'PENDING', 'CANCELLED', 'REFUNDED', 'FAILED'])(
    'that is %s has its ids and its version, and nothing else',
    status => {
      const row = decoded('a/p', samplePledge({ status, version: 3, reward_id: 'r', backer_id: 'b' }))
      expect(row).toEqual({ campaign_id: 'a', pledge_id: 'p', version: 3n, ...empty })
    },
  )

  test('that was deleted ranks after every version', () => {
    expect(decoded('a/p', null)).toEqual({
      campaign_id: 'a',
      pledge_id: 'p',
      version: tombstoneVersion,
      ...empty,
    })
    expect(() => decoded('no slash', null)).toThrow(TypeError)
  })
})

describe('the ledger row of an API key', () => {
  const decoded = (state: ApiKeyState | null) => decodedRow(apiKeyColumns, apiKeyRow('k', state))

  test('of a deleted key has no address, no account and no hash', () => {
    expect(decoded(null)).toEqual({
      api_key: 'k',
      version: tombstoneVersion,
      is_unrevoked: false,
      account_id: '',
      integration_name: '',
      integration_url: '',
      integration_contact_email: '',
      secret_hash: '',
      scopes: [],
      issued_at: 0,
      expires_at: null,
    })
  })

  test.each([
    ['ACTIVE', true],
    ['REVOKED', false],
    ['UNKNOWN', false],
  ] as const)('that is %s is unrevoked: %s', (status, expected) => {
    const { data } = apiKeyEvent({ key: 'k', account_id: 'acc', status })
    expect(decoded(data as ApiKeyState).is_unrevoked).toBe(expected)
  })
})

/** All values as text. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? String(item) : item))
}
