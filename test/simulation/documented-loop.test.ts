/** Why the documented loop repeats a walk over two snapshots: when a campaign leaves, the others move up by one place. */
import { expect, test } from 'vitest'
import type { Project } from '../../contracts/api/schemas.ts'
import { type LoopSettings, type Place, poll } from './documented-loop.ts'

const snapshots = [
  { asOf: '2026-03-01T12:00:00.000Z', ids: ['a', 'b', 'c', 'd'] },
  { asOf: '2026-03-01T12:01:00.000Z', ids: ['b', 'c', 'd'] },
]

/** A service that changes to the second snapshot after two pages. The only change is that `a` has left. */
function settingsOf(onCrossing: LoopSettings['onCrossing']): LoopSettings {
  let pages = 0
  return {
    pageSize: 1,
    wait: async () => {},
    ...(onCrossing && { onCrossing }),
    async get(path) {
      const { asOf, ids } = snapshots[pages++ < 2 ? 0 : 1] ?? { asOf: '', ids: [] }
      const query = new URLSearchParams(path.split('?')[1])
      const offset = Number(query.get('offset'))
      const found = query.has('updated_since') ? [] : ids
      return Response.json(
        {
          data: found.slice(offset, offset + 1).map(id => ({ id }) as Project),
          pagination: { total: found.length, limit: 1, offset, has_more: offset + 1 < found.length },
        },
        { headers: { 'x-data-as-of': asOf } },
      )
    },
  }
}

async function copyAfterTwoPolls(onCrossing: LoopSettings['onCrossing']): Promise<string[]> {
  const place: Place = { copy: new Map(), since: null }
  const settings = settingsOf(onCrossing)
  for (let polls = 0; polls < 2; polls++) await poll(place, settings)
  return [...place.copy.keys()].toSorted()
}

test('a walk over two snapshots misses a campaign that no later poll brings', async () => {
  expect(await copyAfterTwoPolls('take it')).toEqual(['a', 'b', 'd'])
})

test('the documented loop walks again, and misses nothing', async () => {
  expect(await copyAfterTwoPolls('repeat it')).toEqual(['a', 'b', 'c', 'd'])
})
