/** Which processes share their finished answers. */
import { expect, test, vi } from 'vitest'
import { responses } from '../../../../services/query/cache/response-cache.ts'

test('a process of a version with other public fields shares no answers: one without a field could come from the other', async () => {
  const again = async () => {
    vi.resetModules()
    return (await import('../../../../services/query/cache/response-cache.ts')).responses.prefix
  }
  expect(await again()).toBe(responses.prefix)
  vi.doMock(import('../../../../contracts/api/schemas.ts'), async load => {
    const { shownColumns, ...rest } = await load()
    return { ...rest, shownColumns: { ...shownColumns, list: shownColumns.list.slice(1) } }
  })
  expect(await again()).not.toBe(responses.prefix)
})
