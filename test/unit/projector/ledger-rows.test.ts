import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CampaignState, PledgeState, PledgeStatus } from '../../../contracts/events/event.ts'
import {
  apiKeyColumns,
  apiKeyRow,
  backerHasher,
  campaignColumns,
  campaignRow,
  pledgeColumns,
  pledgeRow,
  tombstoneVersion,
} from '../../../services/projector/ledger-rows.ts'
import { createRowText } from '../../../services/projector/row-text.ts'
import { apiKeyEvent, pledgeEvent, sampleCampaign, sampleReward } from '../../support/sample-events.ts'

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

  test.each(['UNKNOWN', 'DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED'] as const)(
    'that is %s has its id, its version, and nothing else',
    status => {
      const row = campaignRow('a', { ...full, status })
      expect(row).not.toContain(secret)
      expect(row).not.toContain(status)
      const [id, version, isPublic, ...rest] = JSON.parse(row)
      expect([id, version, isPublic]).toEqual(['a', '7', false])
      const emptied = campaignRow('a', { ...sampleCampaign({ campaign_id: 'a', version: 7 }), status })
      expect(rest).toEqual(JSON.parse(emptied).slice(3))
    },
  )

  test.each(['LIVE', 'FUNDED', 'FAILED', 'CANCELLED'] as const)('that is %s has everything', status => {
    const row = JSON.parse(campaignRow('a', { ...full, status }))
    expect(row[campaignColumns.indexOf('is_public')]).toBe(true)
    expect(row[campaignColumns.indexOf('status')]).toBe(status)
    expect(row.filter((cell: unknown) => JSON.stringify(cell).includes(secret))).toHaveLength(18)
  })

  test('names each column once, whatever the row is', () => {
    for (const state of [full, { ...full, status: 'DRAFT' } as CampaignState, null]) {
      expect(JSON.parse(campaignRow('a', state))).toHaveLength(campaignColumns.length)
    }
    expect(new Set(campaignColumns).size).toBe(campaignColumns.length)
  })

  test('that was deleted ranks after every version, and is not public', () => {
    const [id, version, isPublic] = JSON.parse(campaignRow('a', null))
    expect([id, version, isPublic]).toEqual(['a', tombstoneVersion, false])
    expect(BigInt(tombstoneVersion)).toBeGreaterThan(2n ** 63n - 1n)
  })

  test('keeps 64-bit numbers as digits', () => {
    const row = campaignRow('a', { ...full, version: 2n ** 63n - 1n, goal_amount_minor: 2n ** 53n + 1n })
    expect(row).toContain('"9223372036854775807"')
    expect(row).toContain('"9007199254740993"')
  })
})

describe('the ledger row of a pledge', () => {
  test('has a hash in the place of the backer', () => {
    const pledge = samplePledge({ backer_id: 'backer-4711', reward_id: 'r' })
    const row = pledgeRow('a/p', pledge, hashBacker)
    expect(row).not.toContain('4711')
    expect(row).toBe(`a\tp\t1\t1\t${hashBacker('backer-4711')}\t1000\t1100\tr\n`)
  })

  test.each<PledgeStatus>(['UNKNOWN', 'PENDING', 'CANCELLED', 'REFUNDED', 'FAILED'])(
    'that is %s has its ids and its version, and nothing else',
    status => {
      const pledge = samplePledge({ status, version: 3, reward_id: 'r', backer_id: 'b' })
      expect(pledgeRow('a/p', pledge, hashBacker)).toBe('a\tp\t3\t0\t0\t0\t0\t\n')
    },
  )

  test('that was deleted ranks after every version', () => {
    expect(pledgeRow('a/p', null, hashBacker)).toBe(`a\tp\t${tombstoneVersion}\t0\t0\t0\t0\t\n`)
    expect(() => pledgeRow('no slash', null, hashBacker)).toThrow(TypeError)
  })

  test('is one line with every column, whatever its ids hold', () => {
    const id = fc.string({ unit: 'binary', minLength: 1 }).filter(text => !text.includes('/'))
    fc.assert(
      fc.property(id, id, id, (campaign_id, pledge_id, reward_id) => {
        const pledge = samplePledge({ campaign_id, pledge_id, reward_id })
        const line = pledgeRow(`${campaign_id}/${pledge_id}`, pledge, hashBacker)
        expect(line.indexOf('\n')).toBe(line.length - 1)
        const cells = line.slice(0, -1).split('\t')
        expect(cells).toHaveLength(pledgeColumns.length)
        expect([cells[0], cells[1], cells.at(-1)].map(cell => fromTsv(cell ?? ''))).toEqual([
          campaign_id,
          pledge_id,
          reward_id,
        ])
      }),
    )
  })
})

describe('the ledger row of an API key', () => {
  test('of a deleted key has no address, no account and no hash', () => {
    const row = JSON.parse(apiKeyRow('k', null))
    expect(row).toHaveLength(apiKeyColumns.length)
    expect(row.slice(0, 8)).toEqual(['k', tombstoneVersion, false, '', '', '', '', ''])
  })

  test.each([
    ['ACTIVE', true],
    ['REVOKED', false],
    ['UNKNOWN', false],
  ] as const)('that is %s is unrevoked: %s', (status, expected) => {
    const { data } = apiKeyEvent({ key: 'k', account_id: 'acc', status })
    const row = JSON.parse(apiKeyRow('k', data as Parameters<typeof apiKeyRow>[1]))
    expect(row[apiKeyColumns.indexOf('is_unrevoked')]).toBe(expected)
  })
})

describe('the hash of a backer', () => {
  test('is the same for the same backer, and another under another key', () => {
    expect(hashBacker('b')).toBe(backerHasher('ab'.repeat(32))('b'))
    expect(hashBacker('b')).not.toBe(backerHasher('cd'.repeat(32))('b'))
  })

  test('is an unsigned 64-bit integer that tells backers apart and uses all its bits', () => {
    const hashes = Array.from({ length: 20_000 }, (_, n) => BigInt(hashBacker(`backer-${n}`)))
    expect(new Set(hashes).size).toBe(hashes.length)
    expect(hashes.every(hash => hash >= 0n && hash < 2n ** 64n)).toBe(true)
    for (let bit = 0n; bit < 64n; bit++) {
      const ones = hashes.filter(hash => (hash >> bit) & 1n).length
      expect(ones / hashes.length).toBeGreaterThan(0.45)
      expect(ones / hashes.length).toBeLessThan(0.55)
    }
  })
})

describe('the text of rows', () => {
  test('is all lines in order, whatever their length and characters', () => {
    const lines = fc.array(fc.string({ unit: 'binary', maxLength: 200 }), { maxLength: 100 })
    fc.assert(
      fc.property(lines, fc.nat(64), (texts, bytesInitial) => {
        const rows = createRowText(bytesInitial)
        for (const text of texts) rows.add(`${text}\n`)
        expect(rows.rows).toBe(texts.length)
        expect(rows.text()).toBe(texts.map(text => `${text}\n`).join(''))
      }),
    )
  })
})

function fromTsv(cell: string): string {
  const characters: Record<string, string> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', 0: '\0' }
  return cell.replace(/\\(.)/gs, (_, character: string) => characters[character] ?? character)
}
