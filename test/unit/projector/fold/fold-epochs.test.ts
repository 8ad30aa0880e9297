import { expect, test } from 'vitest'
import { FoldPaused, takeEpoch } from '../../../../services/projector/fold/fold-epochs.ts'
import { foldPauseMsMax, pauseHolderName } from '../../../../services/projector/fold/fold-pause.ts'
import { generationOf } from '../../../../services/tables/generations.ts'
import type { Statement, Tables } from '../../../../services/tables/port.ts'

test('a repair that failed after the epoch was taken runs again when the next leader takes over', async () => {
  const table = epochsHeldBy(pauseHolderName('killed'))
  let repairs = 0
  async function repair(): Promise<void> {
    repairs++
    if (repairs === 2) throw new Error('the server was away')
  }
  await expect(take(table, 'first', repair)).rejects.toThrow('the server was away')
  // The pause is gone from the table: its permit may not be.
  await take(table, 'second', repair)
  expect(repairs).toBe(3)
})

test('the pause of a killed rebuild ends in time by the clock of a process that waits, if ClickHouse’s stepped back', async () => {
  const table = epochsHeldBy(pauseHolderName('killed'), -86_400_000)
  const repair = async () => {}
  await expect(take(table, 'first', repair, foldPauseMsMax - 1)).rejects.toThrow(FoldPaused)
  await take(table, 'first', repair, foldPauseMsMax)
})

function take(tables: Tables, holder: string, afterExpiredPause: () => Promise<void>, seenMs = 0) {
  return takeEpoch({
    pausedMs: () => seenMs,
    tables,
    databases: generationOf({ base: 'm', views: 'v' }, 1),
    holder,
    respectsPauses: true,
    afterExpiredPause,
    epochFloor: async () => 0n,
    backoff: async () => {},
  })
}

/** Answers as the epochs table whose last holder has paused the fold: by default, for longer than allowed. */
function epochsHeldBy(first: string, ageMs = foldPauseMsMax + 1): Tables {
  let last = { epoch: 1n, holder: first }
  const tables: Pick<Tables, 'rows' | 'run'> = {
    rows: async <Row>() => [{ epoch: last.epoch.toString(), holder: last.holder, ageMs }] as Row[],
    async run({ query_params }: Statement) {
      last = { epoch: last.epoch + 1n, holder: String(query_params?.holder) }
    },
  }
  return tables as Tables
}
