/**
 * A kill -9 at any moment repeats work and changes nothing in its outcome: the projector of a data directory, or its
 * ClickHouse alone, is killed again and again, while another process appends to the journal.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openDataDirectory } from '../../services/embedded/data-directory.ts'
import { firstOffset } from '../../services/log/local/file.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import { readPositions } from '../../services/projector/positions/positions.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import type { Tables } from '../../services/tables/port.ts'
import { type OwnTables, openOwnTables } from '../support/clickhouse/clickhouse.ts'
import { journalEnds } from '../support/events/journal-ends.ts'
import { readModelOf } from '../support/events/model.ts'
import { apiKeyEvent } from '../support/events/sample-events.ts'
import { createTraffic, type Traffic } from '../support/faults/traffic.ts'
import {
  activeKeys,
  column,
  foldFaults,
  livesWithBatches,
  noFoldFaults,
} from '../support/projector/fold-records.ts'
import { expectedReading, readViews } from '../support/projector/model-tables.ts'
import { keptRejects } from '../support/projector/reject-filters.ts'
import { intBetween, randomOf } from '../support/runner/random.ts'

const script = fileURLToPath(new URL('../support/projector/projector-child.ts', import.meta.url))
const random = randomOf('kill')
// Every fifth projector is killed while it opens, the others a moment after they have got something done.
const kills = 10
const killsAtWork = 8
const killsOfClickHouse = 8
// A ClickHouse has to start first, and may have to wait until the one before it has ended. Only a hang takes this long.
const startMsMax = 120_000
const { ledger, views } = defaultDatabases

describe('a projector that is killed at any moment, and so is its ClickHouse', () => {
  let root: string
  let traffic: Traffic
  let own: OwnTables | undefined
  let tables: Tables
  let clickHouses: number[] = []

  /** Kills ClickHouse, and then projectors, while the journal grows; lets the last one finish, and opens what they left. */
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'pledgeview-kill-'))
    const directory = openDataDirectory(root)
    const writer = await openJournalWriter(directory.journal)
    traffic = createTraffic({ random: randomOf('traffic'), writer, slowness: 2 })
    traffic.start()
    clickHouses = await killClickHouses(root)
    for (let kill = 1; kill <= kills; kill++) {
      if (kill <= 5)
        await traffic.say([
          apiKeyEvent({ key: `key-${6 - kill}`, account_id: 'acc', issued_at: Date.UTC(2026, 0, 6 - kill) }),
        ])
      const isOpening = kill % 5 === 0
      const child = startProjector(root)
      const exit = once(child, 'exit')
      child.on('message', message => message === 'open' && child.send('clickhouse'))
      child.on('message', message => clickHouses.push(...pidIn(message)))
      if (!isOpening) {
        const worked = new Promise<void>(resolve =>
          child.on('message', said => said === 'worked' && resolve()),
        )
        child.on('message', message => message === 'open' && child.send('work'))
        await Promise.race([worked, exit])
      }
      await Promise.race([delay(intBetween(random, 0, isOpening ? 1_000 : 250)), exit])
      expect(child.exitCode, 'a projector ended by itself').toBe(null)
      child.kill('SIGKILL')
      await exit
    }
    await traffic.pause()
    await traffic.stop()
    await writer.close()
    const last = startProjector(root)
    await once(last, 'message')
    last.send('finish')
    const [code] = await once(last, 'exit')
    expect(code).toBe(0)
    own = await openOwnTables({ directory: root })
    tables = own.tables
  }, 600_000)

  afterAll(async () => {
    await own?.close()
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  test('ends with the tables that the events say, and all of the journal read', async () => {
    expect(await readViews(tables, defaultDatabases)).toEqual(expectedReading(readModelOf(traffic.events())))
    const { ofLog } = await readPositions([{ tables, databases: defaultDatabases }], '')
    const ends = Object.entries(journalEnds(join(root, 'journal.sqlite')))
    expect(ends.map(([topic]) => [topic, ofLog.get(`${topic}/0`)?.next ?? firstOffset])).toEqual(ends)
  })

  test('ends with the active keys that the events say', async () => {
    expect(await activeKeys(tables, defaultDatabases)).toEqual(['key-1', 'key-2', 'key-3'])
  })

  test('ends with every reject, once each, with its bytes', async () => {
    const kept = await keptRejects(tables, defaultDatabases)
    const texts = kept.map(({ record }) => Buffer.from(record.value ?? []).toString('base64'))
    expect(texts.toSorted()).toEqual(
      traffic
        .poisoned()
        .map(value => value.toString('base64'))
        .toSorted(),
    )
    expect(texts.length).toBeGreaterThan(10)
  })

  test('took an epoch of its own in each life that came so far, folded under no other, and left no gap or doubt', async () => {
    expect(await foldFaults(tables, defaultDatabases)).toEqual(noFoldFaults)
    const epochs = await column(
      tables,
      `SELECT epoch AS value FROM ${ledger}.fold_epochs ORDER BY taken_at, epoch`,
    )
    expect(epochs).toEqual(epochs.map((_, index) => index + 1))
    expect(epochs.length).toBeGreaterThan(killsAtWork / 2)
    expect(await livesWithBatches(tables, defaultDatabases)).toBeGreaterThanOrEqual(killsAtWork)
    expect(await column(tables, `SELECT count() > 30 AS value FROM ${views}.campaigns`)).toEqual([1])
  })

  test('leaves no ClickHouse behind', () => {
    expect(new Set(clickHouses).size).toBeGreaterThan(killsOfClickHouse)
    expect(clickHouses.filter(pid => existsSync(`/proc/${pid}`) && isClickHouseOf(pid, root))).toEqual([])
  })

  test('finished its folds in their order', async () => {
    const inOrder = await column(
      tables,
      `SELECT fold_id AS value FROM ${ledger}.fold_progress FINAL ORDER BY written_at, fold_id`,
    )
    expect(inOrder).toEqual(inOrder.toSorted((a, b) => Number(a) - Number(b)))
  })
})

/**
 * Kills the ClickHouse of one projector again and again, while it is at work. Resolves with the process ids that it had; the
 * projector is then ended by a kill, too.
 */
async function killClickHouses(root: string): Promise<number[]> {
  const pids: number[] = []
  const child = startProjector(root)
  await once(child, 'message')
  for (let kill = 0; kill < killsOfClickHouse; kill++) {
    const pid = await vi.waitFor(
      async () => {
        const answer = once(child, 'message')
        child.send('clickhouse')
        const [next = 0] = pidIn((await answer)[0])
        expect(pids).not.toContain(next)
        return next
      },
      { timeout: startMsMax, interval: 50 },
    )
    pids.push(pid)
    await delay(intBetween(random, 0, 400))
    process.kill(pid, 'SIGKILL')
  }
  expect(child.exitCode, 'the projector ended by itself').toBe(null)
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
  return pids
}

/** Process ids are used again, so the command line has to say whose it is. */
function isClickHouseOf(pid: number, root: string): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(root)
}

function pidIn(message: unknown): number[] {
  return typeof message === 'object' && message !== null && 'clickHouse' in message
    ? [Number(message.clickHouse)]
    : []
}

function startProjector(root: string): ChildProcess {
  return fork(script, [root], {
    // Small batches, so that a life has many of them and a kill falls between any two steps.
    env: {
      PATH: process.env.PATH,
      PLEDGEVIEW_BATCH_RECORDS_MAX: '60',
      PLEDGEVIEW_BATCH_MS_MAX: '5',
      PLEDGEVIEW_REJECT_SHARE_MAX: '1',
      // ClickHouse is killed again as soon as it is back, so a batch may have to wait for the end of all the kills.
      PLEDGEVIEW_RETRY_MS_MAX: '600000',
      PLEDGEVIEW_FOLD_MS_MAX: '30000',
    },
  })
}
