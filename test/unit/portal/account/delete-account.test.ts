/** A deletion leaves nothing, wherever its process is killed: another one completes it. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type DeletionPorts, deleteAccount } from '../../../../services/portal/account/delete-account.ts'
import { createDeletionFinisher } from '../../../../services/portal/account/finish-deletions.ts'
import type { PortalKey } from '../../../../services/portal/ports.ts'

/** An account with two keys. The process is killed at its call number `killedAt`. */
function model() {
  const state = { account: 'present' as 'present' | 'marked' | 'gone', keys: ['active', 'revoked'] }
  const calls: string[] = []
  const portsOf = (killedAt: number): DeletionPorts => {
    let count = 0
    const step = async (name: string, act: () => void = () => undefined) => {
      count += 1
      if (count >= killedAt) throw new Error('killed')
      calls.push(name)
      act()
    }
    return {
      accounts: {
        beginDeletion: () =>
          step('begin', () => {
            if (state.account === 'present') state.account = 'marked'
          }),
        beingDeleted: async () => (state.account === 'marked' ? ['account'] : []),
        delete: () =>
          step('delete', () => {
            state.account = 'gone'
          }),
      },
      keys: {
        async ofAccount() {
          await step('list')
          return state.keys.map((status, n) => ({ key: `key-${n}`, status }) as PortalKey)
        },
        async revoke() {
          await step('revoke')
          state.keys[0] = 'revoked'
          return {} as PortalKey
        },
        deleteAll: () => step('deleteAll', () => state.keys.splice(0)),
      },
    }
  }
  return { state, calls, portsOf }
}

describe('the deletion of an account', () => {
  test('deletes keys before and after the account, and the account once more at the end', async () => {
    const { state, calls, portsOf } = model()
    await deleteAccount(portsOf(Infinity), 'account')
    expect(calls).toEqual(['begin', 'list', 'revoke', 'deleteAll', 'delete', 'deleteAll', 'delete'])
    expect(state).toEqual({ account: 'gone', keys: [] })
  })

  test.each([2, 3, 4, 5, 6, 7])(
    'is completed by another process if it is killed at step %i',
    async killedAt => {
      const { state, portsOf } = model()
      await expect(deleteAccount(portsOf(killedAt), 'account')).rejects.toThrow('killed')
      const errors: unknown[] = []
      const finisher = createDeletionFinisher({
        ...portsOf(Infinity),
        pollMs: 1,
        sleep: ms => pause(ms),
        onError: error => errors.push(error),
      })
      finisher.start()
      await expect.poll(() => state).toEqual({ account: 'gone', keys: [] })
      await finisher.close()
      expect(errors).toEqual([])
    },
  )
})
