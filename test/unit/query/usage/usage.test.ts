import { once } from 'node:events'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createUsageRecorder } from '../../../../services/query/usage/usage-recorder.ts'
import { createRuntime } from '../../../../services/runtime/runtime.ts'
import { generationOf } from '../../../../services/tables/generation-log.ts'
import type { Tables } from '../../../../services/tables/port.ts'

test('a flush that a stop cuts off is no failure: the last flush writes the same', async () => {
  const runtime = createRuntime(pino({ level: 'silent' }))
  const begun = Promise.withResolvers<void>()
  let inserts = 0
  const tables: Pick<Tables, 'insert'> = {
    async insert(_, { signal } = {}) {
      if (++inserts > 1 || signal === undefined) return
      begun.resolve()
      await once(signal, 'abort')
      throw signal.reason
    },
  }
  const errors: unknown[] = []
  const recorder = createUsageRecorder(
    tables,
    generationOf({ base: 'm', views: 'v' }, 1),
    'p',
    error => errors.push(error),
    { ...runtime, keyLimit: 120 },
  )
  recorder.count('k', 200, false)
  recorder.start()
  await begun.promise
  await recorder.close()
  expect({ inserts, errors }).toEqual({ inserts: 2, errors: [] })
  const { values } = await runtime.metrics.usageFlushes.get()
  expect(values.map(({ labels, value }) => ({ ...labels, value }))).toEqual([
    { outcome: 'written', value: 1 },
  ])
})
