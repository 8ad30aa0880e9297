import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createFormTokens, formMsMax } from '../../../../services/portal/keys/form-token.ts'

const portalKey = 'ab'.repeat(32)

function setUp() {
  const claimed = new Set<string>()
  const clock = { now: Date.parse('2026-11-22T14:00:00Z') }
  const store = {
    claim: async (id: string) => {
      const isFirst = !claimed.has(id)
      claimed.add(id)
      return isFirst
    },
  }
  const portal = () => createFormTokens({ store, portalKey, now: () => clock.now, randomBytes })
  return { clock, claimed, portal }
}

describe('a form that must not act twice', () => {
  it('acts once, however often it is sent one after the other', async () => {
    const tokens = setUp().portal()
    const token = tokens.make('account')
    let runs = 0
    const send = () => tokens.once('account', token, async () => ++runs)
    expect(await send()).toEqual({ outcome: 'done', value: 1 })
    expect(await send()).toEqual({ outcome: 'used' })
    expect(runs).toBe(1)
  })

  it('gives the result of the first to a second that arrives meanwhile: a browser shows the last answer only', async () => {
    const tokens = setUp().portal()
    const token = tokens.make('account')
    const finish = Promise.withResolvers<string>()
    const first = tokens.once('account', token, () => finish.promise)
    const second = tokens.once('account', token, async () => 'another key')
    finish.resolve('the key')
    expect(await Promise.all([first, second])).toEqual(Array(2).fill({ outcome: 'done', value: 'the key' }))
  })

  it('acts once if it is sent to two portals at once', async () => {
    const { portal } = setUp()
    const [one, two] = [portal(), portal()]
    const token = one.make('account')
    const results = await Promise.all(
      [one, two].map(tokens => tokens.once('account', token, async () => 'key')),
    )
    expect(results.map(({ outcome }) => outcome).toSorted()).toEqual(['done', 'used'])
  })

  it('fails for all that waited, and is used up', async () => {
    const tokens = setUp().portal()
    const token = tokens.make('account')
    const fail = () => tokens.once('account', token, () => Promise.reject(new Error('away')))
    const results = await Promise.allSettled([fail(), fail()])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await fail()).toEqual({ outcome: 'used' })
  })

  it('is refused with the token of another account, or with one that was changed, and nothing is stored', async () => {
    const { claimed, portal } = setUp()
    const tokens = portal()
    const token = tokens.make('one')
    const [time = '', ...rest] = token.split('.')
    const changed = [Number.parseInt(time, 36) + 1].map(at => [at.toString(36), ...rest].join('.'))
    const run = () => Promise.reject(new Error('must not run'))
    expect(await tokens.once('two', token, run)).toEqual({ outcome: 'too old' })
    for (const wrong of changed) expect(await tokens.once('one', wrong, run)).toEqual({ outcome: 'too old' })
    expect(claimed.size).toBe(0)
    expect(await tokens.once('one', token, async () => 1)).toEqual({ outcome: 'done', value: 1 })
  })

  it('is refused after a day, before the store may forget that it was used', async () => {
    const { clock, portal } = setUp()
    const tokens = portal()
    const token = tokens.make('account')
    clock.now += formMsMax
    expect(await tokens.once('account', token, async () => 1)).toEqual({ outcome: 'too old' })
  })

  it.each([
    '',
    'x',
    '.',
    `${'z'.repeat(11)}.${'a'.repeat(22)}`,
    `0.${'a'.repeat(22)}`,
    `1e3.${'a'.repeat(23)}`,
    `${Date.parse('2026-11-22T14:00:00Z').toString(36)}.${'a'.repeat(22)}.${'a'.repeat(43)}`,
  ])('is refused with a made-up token: %j', async token => {
    expect(
      await setUp()
        .portal()
        .once('account', token, async () => 1),
    ).toEqual({ outcome: 'too old' })
  })
})
