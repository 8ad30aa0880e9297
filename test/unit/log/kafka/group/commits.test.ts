/** What a reader commits while another commit is under way. */
import { expect, test } from 'vitest'
import type { Assignment, HeldPartition } from '../../../../../services/log/kafka/group/assignment.ts'
import { createCommits } from '../../../../../services/log/kafka/group/commits.ts'
import { type Position, partitionName } from '../../../../../services/log/port.ts'

test('what the group has is committed once more behind a commit that is under way, and does not take it back', async () => {
  const held = { topic: 'pledges', partition: 0, atGroup: 100 } as HeldPartition
  const assignment = {
    ...{ name: 'a', isReading: true, watermark: { watermark: 7, shown: 6 } },
    partitions: new Map([[partitionName(held), held]]),
  } as unknown as Assignment
  const committed: number[] = []
  const commits = createCommits({
    member: {
      async commit(positions: readonly Position[]) {
        committed.push(...positions.map(({ next }) => next))
      },
    },
    present: () => assignment,
    withRetry: work => work(),
  })
  const first = commits.commit('a', [{ topic: 'pledges', partition: 0, next: 150 }])
  await Promise.all([first, commits.restate('a', held)])
  expect(committed).toEqual([150, 150])
})
