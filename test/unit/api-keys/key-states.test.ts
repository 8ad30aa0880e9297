/** What wins when several processes write one key at once, in whatever order the events are read. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ApiKeyState } from '../../../contracts/events/event.ts'
import { issueKey, keyDirectory } from '../../../services/api-keys/api-keys.ts'
import { changedState, revokedState } from '../../../services/api-keys/key-states.ts'
import { sampleKey } from '../portal/keys/samples.ts'

const now = Date.UTC(2026, 10, 22)
const versionMax = 2n ** 63n - 1n

const record = sampleKey({ issued_at_ms: now - 1_000, expires_at_ms: now + 1_000 })

const changed = { name: 'Renamed', url: 'https://new.example/', contact_email: 'new@board.example' }

const version = fc.bigInt({ min: 1n, max: 2n ** 62n }).map(String)

/** The state that the ledger keeps. */
function latest(states: readonly (ApiKeyState | undefined)[]): ApiKeyState | undefined {
  return states.reduce((a, b) => (b && (!a || BigInt(b.version) > BigInt(a.version)) ? b : a), undefined)
}

describe('the events of a key', () => {
  test('a revocation is never taken back by what another process writes at the same time', () => {
    fc.assert(
      fc.property(version, fc.uint8Array({ minLength: 3, maxLength: 3 }), (from, random) => {
        const base = { ...record, version: from }
        const states = [revokedState(base, now), changedState(base, changed, now, () => random)]
        expect(latest(states)?.status).toBe('REVOKED')
        expect(latest(states)).toBe(latest(states.toReversed()))
        expect(latest([revokedState(base, now), revokedState(base, now)])?.version).toBe(
          revokedState(base, now)?.version,
        )
      }),
    )
  })

  test('never leave the range of versions; a key with the highest one cannot be revoked by a state', () => {
    const highest = { ...record, version: String(versionMax) }
    expect(revokedState(highest, now)).toBeUndefined()
    const nearly = { ...record, version: String(versionMax - 1n) }
    for (const state of [revokedState(nearly, now), changedState(nearly, changed, now, randomBytes)]) {
      expect(state?.version).toBe(versionMax)
    }
  })
})

test('a read of keys ends within its bound although the tables do not answer', async () => {
  const tables = {
    rows: (_statement: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise<never>((_resolve, reject) =>
        signal?.addEventListener('abort', () => reject(signal.reason)),
      ),
  } as unknown as Parameters<typeof keyDirectory>[0]
  const directory = keyDirectory(tables, {} as Parameters<typeof keyDirectory>[1], 1)
  await expect(directory.ofAccount('account')).rejects.toThrow('timeout')
  await expect(directory.find('key')).rejects.toThrow('timeout')
})

const admin = {
  writer: { append: async () => undefined, close: async () => undefined },
  ...{ pepper: 'pepper', now: Date.now, monotonicMs: () => performance.now(), randomBytes },
}
const wanted = { account: 'account', name: 'n', url: 'https://board.example/', email: 'a@board.example' }

test.each(['revoked', 'deleted'])(
  'a key that is %s while it is issued is refused with that reason',
  async end => {
    let looks = 0
    const find = async (key: string) => {
      if (++looks === 1) return [sampleKey({ key })]
      return end === 'revoked' && looks === 2 ? [sampleKey({ key, status: 'revoked' })] : []
    }
    const issued = issueKey({ ...admin, directory: { ofAccount: async () => [], find } }, wanted)
    await expect(issued).rejects.toThrow('revoked or deleted while it was issued')
  },
)

test('a new key waits for the ends of all expired ones at once', async () => {
  const ended = ['a', 'b', 'c'].map(letter =>
    sampleKey({ key: `pv_live_${letter.repeat(32)}`, status: 'ended' }),
  )
  const asked = new Set<string>()
  const find = async (key: string) => {
    asked.add(key)
    const areAllAsked = ended.every(one => asked.has(one.key))
    const found = ended.find(one => one.key === key)
    if (!found) return [sampleKey({ key, status: 'active' })]
    return [{ ...found, status: areAllAsked ? ('revoked' as const) : found.status }]
  }
  const began = performance.now()
  await issueKey({ ...admin, directory: { ofAccount: async () => ended, find } }, wanted)
  expect(performance.now() - began).toBeLessThan(12_000)
})
