/** The deletion of an account, with the process killed at each step. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  createDeletionFinisher,
  type DeletionPorts,
  deleteAccount,
} from '../../../../services/portal/account/deletions.ts'
import type { Account } from '../../../../services/portal/ports.ts'

/** An account with two keys. The process is killed at its call number `killedAt`. */
function model() {
  const state = { account: 'present' as 'present' | 'deleted' | 'ended', keys: ['active', 'revoked'] }
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
        find: async () => (state.account === 'present' ? ({} as Account) : undefined),
        delete: () =>
          step('delete', () => {
            if (state.account === 'present') state.account = 'deleted'
          }),
        unfinished: async () => (state.account === 'deleted' ? ['account'] : []),
        finishDeletion: () =>
          step('finish', () => {
            if (state.keys.length === 0) state.account = 'ended'
          }),
      },
      keys: { deleteAll: () => step('deleteAll', () => state.keys.splice(0)) },
    }
  }
  return { state, calls, portsOf }
}

async function finished(ports: DeletionPorts, isDone: () => boolean): Promise<unknown[]> {
  const errors: unknown[] = []
  const finisher = createDeletionFinisher({
    ...ports,
    pollMs: 1,
    sleep: ms => pause(ms),
    onError: error => errors.push(error),
  })
  finisher.start()
  await expect.poll(isDone).toBe(true)
  await finisher.close()
  return errors
}

describe('the deletion of an account', () => {
  test('ends the account first, and then deletes its keys', async () => {
    const { state, calls, portsOf } = model()
    await deleteAccount(portsOf(Infinity), 'account')
    expect(calls).toEqual(['delete', 'deleteAll'])
    expect(state).toEqual({ account: 'deleted', keys: [] })
  })

  test('is completed by another process if it is killed before its keys are deleted', async () => {
    const { state, portsOf } = model()
    await expect(deleteAccount(portsOf(2), 'account')).rejects.toThrow('killed')
    expect(await finished(portsOf(Infinity), () => state.account === 'ended')).toEqual([])
    expect(state.keys).toEqual([])
  })

  test('never deletes the keys of a person who has signed up again', async () => {
    const { state, calls, portsOf } = model()
    const ports = portsOf(Infinity)
    const accounts = { ...ports.accounts, unfinished: async () => ['account'] }
    await finished({ ...ports, accounts }, () => calls.includes('finish'))
    expect(state).toEqual({ account: 'present', keys: ['active', 'revoked'] })
  })
})
