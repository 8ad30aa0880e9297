/** Which rebuilds tell a projector that was away too long that it may start again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { dropPrevious } from '../../../services/rebuild/rebuild-controller.ts'
import { type ModelTables, openModelTables } from '../../support/model-tables.ts'
import { openRebuildableModel, platformHistory } from '../../support/rebuilds.ts'

let model: ModelTables

beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

test('only a rebuild from the log alone notes presence, once, and not when it continues after the swap', async () => {
  const live = await openRebuildableModel(model)
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-presence-'))
  async function notes(): Promise<number> {
    const [found] = await live.tables.rows<{ notes: number }>({
      query: `SELECT count() AS notes FROM ${live.databases.model}.projector_log WHERE kind = 'present' AND projector LIKE 'rebuild-%'`,
    })
    return Number(found?.notes)
  }
  try {
    const events = platformHistory(3)
    await live.append(events)
    await live.settled()
    const archive = join(folder, 'events.ndjson')
    writeFileSync(archive, events.map(event => `${formatEvent(event)}\n`).join(''))

    await live.rebuild({ files: [archive] })
    expect(await notes()).toBe(0)
    await live.rebuild({ kind: 'rollback' })
    expect(await notes()).toBe(0)
    await dropPrevious(live)

    const killed = live.rebuild({
      onPhase: async phase => {
        if (phase === 'finishing') throw new Error('killed after the swap')
      },
    })
    await expect(killed).rejects.toThrow('killed after the swap')
    expect(await notes()).toBe(1)
    await live.rebuild()
    expect(await notes()).toBe(1)
  } finally {
    rmSync(folder, { recursive: true })
    await live.close()
  }
})
