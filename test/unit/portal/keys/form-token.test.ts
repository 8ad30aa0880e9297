import { describe, expect, it } from 'vitest'
import { createOnce, newFormToken } from '../../../../services/portal/keys/form-token.ts'

function setUp() {
  const claimed = new Set<string>()
  const store = {
    async claim(id: string) {
      const isFirst = !claimed.has(id)
      claimed.add(id)
      return isFirst
    },
  }
  return { claimed, portal: () => createOnce(store), token: newFormToken() }
}

describe('a form that must not act twice', () => {
  it('acts once for an account, however often and at whatever portals it is sent', async () => {
    const { portal, token } = setUp()
    const portals = [portal(), portal()]
    let runs = 0
    const sent = await Promise.all(portals.map(once => once('account', token, async () => ++runs)))
    expect(sent.filter(result => result !== undefined)).toEqual([{ value: 1 }])
    expect(await portals[0]?.('account', token, async () => ++runs)).toBeUndefined()
    expect(runs).toBe(1)
    expect(await portals[0]?.('another', token, async () => 'its own')).toEqual({ value: 'its own' })
  })

  it('gives the result of the first to a second that arrives meanwhile: a browser shows the last answer only', async () => {
    const { portal, token } = setUp()
    const once = portal()
    const finish = Promise.withResolvers<string>()
    const first = once('account', token, () => finish.promise)
    const second = once('account', token, async () => 'another key')
    finish.resolve('the key')
    expect(await Promise.all([first, second])).toEqual(Array(2).fill({ value: 'the key' }))
  })

  it('fails for all that waited, and is used up', async () => {
    const { portal, token } = setUp()
    const once = portal()
    const fail = () => once('account', token, () => Promise.reject(new Error('away')))
    const results = await Promise.allSettled([fail(), fail()])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await fail()).toBeUndefined()
  })

  it.each(['', 'x', `${'a'.repeat(21)}/`, 'a'.repeat(23)])(
    'stores nothing for %j, which is no token',
    async token => {
      const { claimed, portal } = setUp()
      await expect(portal()('account', token, async () => 1)).rejects.toMatchObject({ status: 400 })
      expect(claimed.size).toBe(0)
    },
  )
})
