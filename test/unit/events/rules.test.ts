import currencyTable from 'currency-codes'
import { describe, expect, test } from 'vitest'
import { currencyCodes, currencyDigits } from '../../../contracts/events/currencies.ts'
import type { ApiKeyState, ChangeEvent } from '../../../contracts/events/event.ts'
import {
  faultOf,
  idLengthMax,
  listTextLengthMax,
  pledgeIdsOf,
  rewardsMax,
  slugLengthMax,
} from '../../../contracts/events/rules.ts'
import { apiKeyRow } from '../../../services/projector/ingest/ledger-rows.ts'
import {
  apiKeyEvent,
  campaignEvent,
  pledgeEvent,
  sampleCampaign,
  sampleReward,
} from '../../support/events/sample-events.ts'

describe('the rules of events', () => {
  test('bound the tiers of a campaign, so that one row stays small', () => {
    const withTiers = (count: number) =>
      campaignEvent({
        campaign_id: 'c',
        rewards: Array.from({ length: count }, (_, n) => sampleReward({ reward_id: `r${n}` })),
      })
    expect(faultOf(withTiers(rewardsMax))).toBeUndefined()
    expect(faultOf(withTiers(rewardsMax + 1))).toEqual({
      field: 'rewards',
      reason: 'has 1001 tiers, more than 1000',
    })
  })

  test('bound the ids that are part of no key: the fold of a campaign holds those of all its pledges at once', () => {
    const reason = `is longer than ${idLengthMax} characters`
    const { creator } = sampleCampaign({ campaign_id: 'c' })
    const withIds = (id: string): [field: string, event: ChangeEvent][] => [
      ['reward_id', pledgeEvent({ campaign_id: 'c', pledge_id: 'p', reward_id: id })],
      [
        'rewards[0].reward_id',
        campaignEvent({ campaign_id: 'c', rewards: [sampleReward({ reward_id: id })] }),
      ],
      ['creator.creator_id', campaignEvent({ campaign_id: 'c', creator: { ...creator, creator_id: id } })],
    ]
    for (const [field, event] of withIds('/'.repeat(idLengthMax)))
      expect(faultOf(event), field).toBeUndefined()
    for (const [field, event] of withIds('/'.repeat(idLengthMax + 1)))
      expect(faultOf(event)).toEqual({ field, reason })
  })

  test.each(['/', '?', '#', '%2e', '\\', ' ', '\n', '\u0000', '\u0085', '\u2028'])(
    'keep %j out of a public slug, because it is one segment of a path',
    text => {
      const reason = expect.stringMatching(/^has "[\s\S]+", which a path segment cannot have$/)
      for (const slug of [text, `a${text}`, `a${text}b`])
        expect(faultOf(campaignEvent({ campaign_id: 'c', slug }))).toEqual({ field: 'slug', reason })
    },
  )

  test('let a slug have letters of any script, and bound its length', () => {
    const withSlug = (slug: string) => faultOf(campaignEvent({ campaign_id: 'c', slug }))
    for (const slug of ['a', '花火-の夜', 'ürün_1.0', '...', '.a', 'x~y!', '👩‍🎨', 'x'.repeat(slugLengthMax)])
      expect(withSlug(slug), slug).toBeUndefined()
    for (const slug of ['', '.', '..', 'x'.repeat(slugLengthMax + 1)])
      expect(withSlug(slug), slug).toMatchObject({ field: 'slug' })
  })

  test('bound what a list shows of a public campaign, and reject no withdrawal for it', () => {
    const campaign = sampleCampaign({ campaign_id: 'c' })
    const most = 'x'.repeat(listTextLengthMax)
    const texts = [
      'title',
      'subtitle',
      'category',
      'subcategory',
      'location',
      'campaign_type',
      'project_type',
    ]
    const withTexts = (text: string) => [
      ...texts.map(field => ({ field, change: { [field]: text } })),
      { field: 'creator.name', change: { creator: { ...campaign.creator, name: text } } },
      { field: 'tags', change: { tags: [text.slice(0, 100), text.slice(101)] } },
    ]
    for (const { field, change } of withTexts(most))
      expect(faultOf(campaignEvent({ ...campaign, ...change })), field).toBeUndefined()
    for (const { field, change } of withTexts(`${most}x`)) {
      const reason = `is longer than ${listTextLengthMax} characters`
      expect(faultOf(campaignEvent({ ...campaign, ...change }))).toEqual({ field, reason })
      expect(faultOf(campaignEvent({ ...campaign, ...change, status: 'CANCELLED' }))).toEqual({
        field,
        reason,
      })
      expect(faultOf(campaignEvent({ ...campaign, ...change, status: 'SUSPENDED' }))).toBeUndefined()
    }
    const long = { description: most.repeat(9), risks: most.repeat(9) }
    expect(faultOf(campaignEvent({ ...campaign, ...long }))).toBeUndefined()
  })

  test('bound what every query process holds of an active key, and reject no revocation for it, which stores none of it', () => {
    const integration = { name: 'n', url: 'https://a.example/', contact_email: 'a@b.example' }
    const changes: [field: string, withText: (text: string) => Partial<ApiKeyState>][] = [
      ['integration.name', name => ({ integration: { ...integration, name } })],
      ['integration.url', text => ({ integration: { ...integration, url: `https://${text.slice(8)}` } })],
      ['integration.contact_email', contact_email => ({ integration: { ...integration, contact_email } })],
      ['scopes', text => ({ scopes: [text.slice(0, 100), text.slice(101)] })],
      ['scopes', text => ({ scopes: new Array(text.length + 1).fill('') })],
    ]
    for (const [field, withText] of changes) {
      const withLength = (length: number) => ({ ...apiKey, ...withText('x'.repeat(length)) })
      expect(faultOf(apiKeyEvent(withLength(listTextLengthMax))), field).toBeUndefined()
      const long = withLength(listTextLengthMax + 1)
      const reason = `is longer than ${listTextLengthMax} characters`
      expect(faultOf(apiKeyEvent(long))).toEqual({ field, reason })
      const revoked = apiKeyEvent({ ...long, status: 'REVOKED' })
      expect(faultOf(revoked)).toBeUndefined()
      expect(JSON.stringify(apiKeyRow('k', revoked.data as ApiKeyState)).length, field).toBeLessThan(500)
    }
    expect(apiKeyRow('k', apiKeyEvent({ ...apiKey, status: 'REVOKED' }).data as ApiKeyState)).toContain(
      'Mirror',
    )
  })

  const { creator } = sampleCampaign({ campaign_id: 'c' })
  const apiKey = { key: 'k', account_id: 'a' }
  const linksOf: Record<string, (url: string) => ChangeEvent> = {
    url: url => campaignEvent({ campaign_id: 'c', url }),
    image_url: image_url => campaignEvent({ campaign_id: 'c', image_url }),
    'creator.profile_url': profile_url =>
      campaignEvent({ campaign_id: 'c', creator: { ...creator, profile_url } }),
    'creator.avatar_url': avatar_url =>
      campaignEvent({ campaign_id: 'c', creator: { ...creator, avatar_url } }),
    'integration.url': url =>
      apiKeyEvent({ ...apiKey, integration: { name: 'n', url, contact_email: 'a@b.example' } }),
  }

  test.each(Object.entries(linksOf))('let %s be a web address and nothing else', (field, eventOf) => {
    for (const url of ['https://a.example', 'HTTP://a.example:8080/ü?q=1#f', 'https://[::1]/'])
      expect(faultOf(eventOf(url)), url).toBeUndefined()
    const scripts = [
      'javascript:alert(1)',
      'java\nscript:alert(1)',
      ' javascript:alert(1)',
      'data:text/html,x',
    ]
    const others = [
      '',
      'a',
      '/a',
      '//a.example',
      'ftp://a.example',
      'https:a.example',
      'https://',
      'http://a b',
    ]
    for (const url of [...scripts, ...others, 'https://a.example/\u0000', 'https://a.example\n'])
      expect(faultOf(eventOf(url)), url).toEqual({
        field,
        reason: 'is not a web address with http:// or https://',
      })
  })

  test('reject no withdrawal for what was erased with it: the state before it would stay', () => {
    const erased = {
      ...{ currency: '', goal_amount_minor: -1, follower_count: -1, launch_date: 9e15, rewards: [] },
      creator: { ...creator, creator_id: '' },
    }
    const links = {
      ...{ slug: 'a/b', url: 'javascript:alert(1)', image_url: '' },
      creator: { ...creator, profile_url: '' },
    }
    const reward = { reward_id: '', title: '', description: '', amount_minor: -1, quantity_available: -1 }
    for (const change of [
      erased,
      links,
      { rewards: [reward] },
      { rewards: new Array(rewardsMax + 1).fill(reward) },
    ]) {
      for (const status of ['DRAFT', 'SUBMITTED', 'APPROVED', 'SUSPENDED', 'UNKNOWN'] as const)
        expect(faultOf(campaignEvent({ campaign_id: 'c', ...change, status }))).toBeUndefined()
      expect(faultOf(campaignEvent({ campaign_id: 'c', ...change, status: 'LIVE' }))).toBeDefined()
    }
    const pledge = { campaign_id: 'c', pledge_id: 'p', backer_id: '', amount_minor: -1, reward_id: '' }
    expect(faultOf(pledgeEvent({ ...pledge, status: 'REFUNDED' }))).toBeUndefined()
    expect(faultOf(pledgeEvent({ ...pledge, status: 'ACTIVE' }))).toMatchObject({ field: 'backer_id' })
    const key = { ...apiKey, secret_hash: '', integration: { name: '', url: '', contact_email: '' } }
    expect(faultOf(apiKeyEvent({ ...key, status: 'REVOKED' }))).toBeUndefined()
    expect(faultOf(apiKeyEvent({ ...key, status: 'ACTIVE' }))).toMatchObject({ field: 'integration.url' })
  })

  test('take a pledge’s key apart into the ids that it was made of', () => {
    expect(pledgeIdsOf('c_1/p_1')).toEqual({ campaign_id: 'c_1', pledge_id: 'p_1' })
    for (const key of ['c_1', '/p_1', 'c_1/', 'c_1/p/1', '/', ''])
      expect(pledgeIdsOf(key), key).toBeUndefined()
  })
})

describe('currencies', () => {
  test('have the digits of ISO 4217’s own list', () => {
    const listed = new Map(currencyTable.data.map(({ code, digits }) => [code, digits]))
    const known = currencyCodes.filter(code => listed.has(code))
    expect(known.length).toBeGreaterThan(150)
    for (const code of known) expect(currencyDigits(code), code).toBe(listed.get(code))
  })

  test('are all there that are money', () => {
    // Metals, drawing rights, bond units, and the codes for testing and for none: they have no smallest unit.
    const withoutUnit = /^X(AG|AU|BA|BB|BC|BD|DR|PD|PT|SU|TS|UA|XX)$/
    const missing = currencyTable.data.map(({ code }) => code).filter(code => !currencyCodes.includes(code))
    expect(missing.filter(code => !withoutUnit.test(code))).toEqual([])
  })
})
