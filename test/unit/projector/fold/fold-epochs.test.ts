import { expect, test } from 'vitest'
import { FoldPaused, takeEpoch } from '../../../../services/projector/fold/fold-epochs.ts'
import { promotionHolder } from '../../../../services/projector/fold/promotion.ts'
import { generationOf } from '../../../../services/tables/generations.ts'
import type { Statement, Tables } from '../../../../services/tables/port.ts'

test('a fold worker waits for a promotion that holds the fold, until it is given up', async () => {
  const table = epochsHeldBy(promotionHolder(7))
  await expect(take(table, 'first', { givenUp: 6 })).rejects.toThrow(FoldPaused)
  expect(await take(table, 'first', { givenUp: 7 })).toMatchObject({ epoch: 2n })
})

test('it waits, too, if the promotion came between its look and its statement', async () => {
  const table = epochsHeldBy('another')
  const late = { ...table, run: async () => table.hold(promotionHolder(8)) }
  await expect(take(late, 'first', { givenUp: 0 })).rejects.toThrow(FoldPaused)
})

test('an attempt waits for no other', async () => {
  const table = epochsHeldBy(promotionHolder(7))
  expect(await take(table, promotionHolder(8), { givenUp: 0, isAttempt: true })).toMatchObject({ epoch: 2n })
})

function take(
  tables: Tables,
  holder: string,
  { givenUp, isAttempt = false }: { givenUp: number; isAttempt?: boolean },
) {
  return takeEpoch({
    tables,
    databases: generationOf({ base: 'm', views: 'v' }, 1),
    holder,
    isAttempt,
    isGivenUp: async attempt => attempt === givenUp,
    epochFloor: async () => 0n,
    backoff: async () => {},
  })
}

/** Answers as the epochs table. */
function epochsHeldBy(first: string): Tables & { hold(holder: string): void } {
  let last = { epoch: 1n, holder: first }
  const hold = (holder: string) => {
    last = { epoch: last.epoch + 1n, holder }
  }
  const tables: Pick<Tables, 'rows' | 'run'> = {
    rows: async <Row>() => [{ epoch: last.epoch.toString(), holder: last.holder }] as Row[],
    run: async ({ query_params }: Statement) => hold(String(query_params?.holder)),
  }
  return { ...(tables as Tables), hold }
}
