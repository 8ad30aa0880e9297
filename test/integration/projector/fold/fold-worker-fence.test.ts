/** Only one fold worker at a time: a superseded one writes nothing and records nothing, however late it continues. */

import { beforeEach, describe, expect, test } from 'vitest'
import { SupersededFoldWorker } from '../../../../services/projector/fold/fold-epochs.ts'
import type { FoldWorker } from '../../../../services/projector/fold/fold-worker.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { qualified } from '../../../../services/tables/generations.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import {
  isCampaignFold,
  isOfLine,
  obstructed,
  type TablesCall,
  timeoutExceeded,
} from '../../../support/clickhouse/faulty-tables.ts'
import { apiKeyEvent, campaignEvent } from '../../../support/events/sample-events.ts'
import { column as columnOf } from '../../../support/projector/fold-records.ts'
import { createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const lineTables = ['campaigns', 'api_keys', 'watermarks', 'fold_progress', 'quarantine']

describe('the fence of the fold', () => {
  const model = useFreshModel()

  beforeEach(async () => {
    // Rows that a superseded fold worker wrote must not be merged away before they are looked for.
    for (const table of lineTables)
      await model.tables.run({ query: `SYSTEM STOP MERGES ${qualified(table, model.databases)}` })
  })

  function foldWorkerNamed(holder: string, tables: Tables = model.tables): FoldWorker {
    return createTestFoldWorker(tables, model.databases, { holder, PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: 1 })
      .foldWorker
  }

  const column = (query: string) => columnOf(model.tables, query)
  const titles = () => column(`SELECT title AS value FROM ${model.databases.views}.campaigns ORDER BY value`)

  test('a fold worker that never acquired leadership writes nothing', async () => {
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await expect(foldWorkerNamed('nobody').fold()).rejects.toBeInstanceOf(SupersededFoldWorker)
    expect(await titles()).toEqual([])
  })

  test('a fold worker that was superseded can acquire leadership again, and continues from the progress of the others', async () => {
    const one = foldWorkerNamed('one')
    const two = foldWorkerNamed('two')
    await one.acquireLeadership()
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await one.fold()
    await two.acquireLeadership()
    expect(await two.fold()).toBeUndefined()
    await model.ingest([campaignEvent({ campaign_id: 'b' })])
    await two.fold()
    await one.acquireLeadership()
    expect(await one.fold()).toBeUndefined()
    await model.ingest([campaignEvent({ campaign_id: 'c' })])
    expect(await one.fold()).toMatchObject({ campaigns: 1 })
    expect(await titles()).toEqual(['Title of a', 'Title of b', 'Title of c'])
  })

  test('if two fold workers get the same epoch, at most one writes', async () => {
    const foldWorker = foldWorkerNamed('m')
    await foldWorker.acquireLeadership()
    const [epoch] = await column(`SELECT max(epoch) AS value FROM ${model.databases.ledger}.fold_epochs`)
    const alsoTaken = (holder: string) =>
      model.tables.run({
        query: `INSERT INTO ${model.databases.ledger}.fold_epochs (epoch, holder) SELECT {epoch:UInt64}, {holder:String}`,
        query_params: { epoch, holder },
      })
    await alsoTaken('a')
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    await foldWorker.fold()
    expect(await titles()).toEqual(['Title of a'])
    await alsoTaken('z')
    await model.ingest([campaignEvent({ campaign_id: 'b' })])
    await expect(foldWorker.fold()).rejects.toBeInstanceOf(SupersededFoldWorker)
    expect(await titles()).toEqual(['Title of a'])
  })

  test('a fold worker that shares an epoch with another takes the next one', async () => {
    let isFirst = true
    const tables = obstructed(model.tables, {
      async after({ kind, text }) {
        if (!isFirst || kind !== 'run' || !text.includes('fold_epochs (epoch, holder)')) return
        isFirst = false
        await model.tables.run({
          query: `INSERT INTO ${model.databases.ledger}.fold_epochs (epoch, holder)
                  SELECT max(epoch), 'rival' FROM ${model.databases.ledger}.fold_epochs`,
        })
      },
    })
    await foldWorkerNamed('a', tables).acquireLeadership()
    const epochs = await column(
      `SELECT (epoch, holder) AS value FROM ${model.databases.ledger}.fold_epochs ORDER BY value`,
    )
    expect(epochs).toEqual([
      [1, 'a'],
      [1, 'rival'],
      [2, 'a'],
    ])
  })

  test('of several that take an epoch at the same time, only one can fold', async () => {
    let seed = 1
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed / 2_147_483_647
    }
    // On a busy machine a statement takes as long as the pauses. Two workers could then meet at every one of their attempts.
    const longer = (ms: number) => sleep(8 * ms)
    const foldWorkers = ['a', 'b', 'c', 'd', 'e'].map(
      holder =>
        createTestFoldWorker(model.tables, model.databases, { holder, random, sleep: longer }).foldWorker,
    )
    await Promise.allSettled(foldWorkers.map(foldWorker => foldWorker.acquireLeadership()))
    await model.ingest([campaignEvent({ campaign_id: 'a' })])
    const folds = await Promise.allSettled(foldWorkers.map(foldWorker => foldWorker.fold()))
    const failures = folds.filter(fold => fold.status === 'rejected')
    expect(failures).toHaveLength(foldWorkers.length - 1)
    for (const { reason } of failures) expect(reason).toBeInstanceOf(SupersededFoldWorker)
    const holders = await column(
      `SELECT holder AS value FROM ${model.databases.ledger}.fold_epochs ORDER BY epoch DESC LIMIT 1 WITH TIES`,
    )
    expect(holders).toHaveLength(1)
    expect(folds[['a', 'b', 'c', 'd', 'e'].indexOf(String(holders[0]))]?.status).toBe('fulfilled')
    expect(await titles()).toEqual(['Title of a'])
  })

  test('every statement of a leader that arrives after the next epoch was taken writes nothing', async () => {
    const sent: TablesCall[] = []
    let isHeavy = true
    const old = createTestFoldWorker(
      obstructed(model.tables, {
        before(call) {
          if (isOfLine(call)) sent.push(call)
          old.advance(1_000)
          if (!isCampaignFold(call) || !isHeavy) return
          // The first statement is refused, the campaign goes into quarantine, and is tried alone.
          isHeavy = call.query_params.campaign === 'a'
          if (call.query_params.campaign === undefined) throw timeoutExceeded()
        },
      }),
      model.databases,
      { holder: 'old' },
    )
    await old.foldWorker.acquireLeadership()
    await model.ingest([campaignEvent({ campaign_id: 'a' }), apiKeyEvent({ key: 'k', account_id: 'acc' })])
    isHeavy = true
    for (let fold = 0; fold < 2; fold++)
      await old.foldWorker.fold().catch(() => old.foldWorker.acquireLeadership())
    await model.ingest([campaignEvent({ campaign_id: 'b' })])
    await old.foldWorker.fold()
    for (const table of lineTables) {
      expect(
        sent.filter(({ text }) => text.includes(`INSERT INTO ${qualified(table, model.databases)}`)),
      ).not.toEqual([])
    }

    await foldWorkerNamed('next').acquireLeadership()
    // What they would write now: newer states, and a fold that was not recorded.
    await model.ingest([
      campaignEvent({ campaign_id: 'a', version: 2, title: 'newer' }),
      campaignEvent({ campaign_id: 'b', version: 2, title: 'newer' }),
      apiKeyEvent({ key: 'l', account_id: 'acc' }),
    ])
    const rowsOf = () =>
      Promise.all(
        lineTables.map(table => column(`SELECT count() AS value FROM ${qualified(table, model.databases)}`)),
      )
    const before = await rowsOf()
    for (const { text, query_params } of sent) await model.tables.run({ query: text, query_params })
    expect(await rowsOf()).toEqual(before)
  })
})
