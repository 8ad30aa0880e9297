import { expect, test } from 'vitest'
import { closing } from '../../../../services/runtime/async/closing.ts'

test('what was opened is closed, the last one first, also if some cannot be closed; the first failure is told', async () => {
  const closed: string[] = []
  const part = (name: string, failure?: string) => ({
    async close() {
      closed.push(name)
      if (failure !== undefined) throw new Error(failure)
    },
  })
  const work = closing(async open => {
    open(part('lock'))
    open(part('tables', 'the tables do not answer'))
    open(part('writer', 'the broker is away'))
  })
  await expect(work).rejects.toThrow('the broker is away')
  expect(closed).toEqual(['writer', 'tables', 'lock'])
})
