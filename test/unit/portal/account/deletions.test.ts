/** The deletion of an account, with the process killed in between. */
import { expect, test } from 'vitest'
import {
  type DeletionPorts,
  deleteAccount,
  finishDeletions,
} from '../../../../services/portal/account/deletions.ts'
import type { Account } from '../../../../services/portal/ports.ts'

/** An account with two keys. */
function model() {
  const state = { account: 'present' as 'present' | 'deleted' | 'ended', keys: ['active', 'revoked'] }
  const ports: DeletionPorts = {
    accounts: {
      find: async () => (state.account === 'present' ? ({} as Account) : undefined),
      async delete() {
        state.account = 'deleted'
      },
      unfinished: async () => ['account'],
      async finishDeletion() {
        if (state.account === 'deleted' && state.keys.length === 0) state.account = 'ended'
      },
    },
    keys: { deleteAll: async () => void state.keys.splice(0) },
  }
  return { state, ports }
}

const { signal } = new AbortController()
const unexpected = (error: unknown) => {
  throw error
}

test('is completed by another process if it is killed before its keys are deleted', async () => {
  const { state, ports } = model()
  const killed = { deleteAll: () => Promise.reject(new Error('killed')) }
  await expect(deleteAccount({ ...ports, keys: killed }, 'account')).rejects.toThrow('killed')
  // The account is gone from the first step on.
  expect(state).toEqual({ account: 'deleted', keys: ['active', 'revoked'] })
  await finishDeletions(ports, signal, unexpected)
  expect(state).toEqual({ account: 'ended', keys: [] })
})

test('never deletes the keys of a person who has signed up again', async () => {
  const { state, ports } = model()
  await finishDeletions(ports, signal, unexpected)
  expect(state).toEqual({ account: 'present', keys: ['active', 'revoked'] })
})

test('one that fails is reported, and does not keep the others from their turn', async () => {
  const { state, ports } = model()
  await ports.accounts.delete('account')
  const errors: unknown[] = []
  const unfinished = async () => ['failing', 'account']
  const find = async (id: string) => (id === 'failing' ? Promise.reject(new Error('away')) : undefined)
  await finishDeletions({ ...ports, accounts: { ...ports.accounts, unfinished, find } }, signal, error =>
    errors.push(error),
  )
  expect(errors).toHaveLength(1)
  expect(state.account).toBe('ended')
})
