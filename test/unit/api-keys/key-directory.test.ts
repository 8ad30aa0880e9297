import { expect, test } from 'vitest'
import { keyDirectory } from '../../../services/api-keys/api-keys.ts'

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
