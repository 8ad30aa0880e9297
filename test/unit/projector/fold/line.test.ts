/** The line of the fold: which statements may run in it. */
import { expect, test } from 'vitest'
import { createLine } from '../../../../services/projector/fold/line.ts'

test('a statement on a table that no new leader waits for does not run', async () => {
  const sent: string[] = []
  const line = createLine({
    tables: { run: async ({ query }) => void sent.push(query) },
    nextStep() {
      throw new Error('there are no pieces')
    },
    beforePiece: async () => {},
    onUnseen: () => {},
  })
  await line.run({ query: 'INSERT INTO model_read_1.campaigns (campaign_id) SELECT 1' })
  const other = 'INSERT INTO model_ledger_1.batch_log (projector) SELECT 1'
  await expect(line.run({ query: other })).rejects.toThrow(
    'no new leader waits for this statement: INSERT INTO model_ledger_1.batch_log',
  )
  expect(sent).toHaveLength(1)
})
