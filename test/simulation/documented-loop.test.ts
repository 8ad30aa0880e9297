/** Why the documented loop repeats a walk over two snapshots: when a campaign leaves, the others move up by one place. */
import { expect, test } from 'vitest'
import type { Project } from '../../contracts/api/schemas.ts'
import { type LoopSettings, type Place, poll } from './documented-loop.ts'

interface Snapshot {
  id: string | undefined
  asOf: string
  ids: string[]
}

const before = { id: 'before', asOf: '2026-03-01T12:00:00.000Z', ids: ['a', 'b', 'c', 'd'] }
const after = { id: 'after', asOf: '2026-03-01T12:01:00.000Z', ids: ['b', 'c', 'd'] }
/** Taken while a statement of the fold runs: the watermark stands still, and `a` has left already. */
const afterAtOnce = { ...after, asOf: before.asOf }

/** As an earlier version of the service shows it. */
function unnamed(snapshot: Snapshot): Snapshot {
  return { ...snapshot, id: undefined }
}

/** A service that changes to the second snapshot after two pages. The only change is that `a` has left. */
function settingsOf(
  snapshots: readonly [Snapshot, Snapshot],
  onCrossing: LoopSettings['onCrossing'],
): LoopSettings {
  let pages = 0
  return {
    pageSize: 1,
    wait: async () => {},
    ...(onCrossing && { onCrossing }),
    async get(path) {
      const { id, asOf, ids } = snapshots[pages++ < 2 ? 0 : 1]
      const query = new URLSearchParams(path.split('?')[1])
      const offset = Number(query.get('offset'))
      const found = query.has('updated_since') ? [] : ids
      return Response.json(
        {
          data: found.slice(offset, offset + 1).map(id => ({ id }) as Project),
          pagination: { total: found.length, limit: 1, offset, has_more: offset + 1 < found.length },
        },
        { headers: { 'x-data-as-of': asOf, ...(id !== undefined && { 'x-snapshot-id': id }) } },
      )
    },
  }
}

async function copyAfterTwoPolls(
  snapshots: readonly [Snapshot, Snapshot],
  onCrossing: LoopSettings['onCrossing'] = 'repeat it',
): Promise<string[]> {
  const place: Place = { copy: new Map(), since: null }
  const settings = settingsOf(snapshots, onCrossing)
  for (let polls = 0; polls < 2; polls++) await poll(place, settings)
  return [...place.copy.keys()].toSorted()
}

test('a walk over two snapshots misses a campaign that no later poll brings', async () => {
  expect(await copyAfterTwoPolls([before, after], 'take it')).toEqual(['a', 'b', 'd'])
})

test('the documented loop walks again, and misses nothing', async () => {
  expect(await copyAfterTwoPolls([before, after])).toEqual(['a', 'b', 'c', 'd'])
})

test('the watermark does not show that two snapshots differ, and their ids do', async () => {
  expect(await copyAfterTwoPolls([unnamed(before), unnamed(afterAtOnce)])).toEqual(['a', 'b', 'd'])
  expect(await copyAfterTwoPolls([before, afterAtOnce])).toEqual(['a', 'b', 'c', 'd'])
})

test('the documented loop notices another snapshot of a service that does not name its snapshots yet', async () => {
  expect(await copyAfterTwoPolls([unnamed(before), unnamed(after)])).toEqual(['a', 'b', 'c', 'd'])
})
