/** The whole projector, on a journal and ClickHouse. */
import { DatabaseSync } from 'node:sqlite'
import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { openJournalReader } from '../../../services/log/local/journal.ts'
import type { NewRecord } from '../../../services/log/port.ts'
import type { ProjectorService } from '../../../services/projector/service.ts'
import { loopCheck } from '../../../services/runtime/ops/checks.ts'
import { TablesError } from '../../../services/tables/port.ts'
import { noteStop, readProjection } from '../../../services/tables/projector-stops.ts'
import {
  isCampaignFold,
  lostConnection,
  obstructed,
  timeoutExceeded,
} from '../../support/clickhouse/faulty-tables.ts'
import { readModelOf } from '../../support/events/model.ts'
import {
  campaignEvent,
  newRecordOf,
  noEvent,
  pledgeEvent,
  smallWorld,
} from '../../support/events/sample-events.ts'
import { restTables } from '../../support/projector/fold-records.ts'
import { startIngest } from '../../support/projector/ingest-loop.ts'
import { expectedReading, readViews } from '../../support/projector/model-tables.ts'
import { positionsIn } from '../../support/projector/positions.ts'
import { keptRejects } from '../../support/projector/reject-filters.ts'
import { useProjector } from '../../support/projector/running-projector.ts'

// Only a hang takes this long.
const soon = { timeout: 60_000 }

describe('the projector', () => {
  const own = useProjector({ mayFail: true })
  const { start } = own

  /** What an earlier run has written and committed, and not folded. */
  async function ingested(): Promise<ChangeEvent[]> {
    const world = smallWorld()
    await own.writer.append(world.map(newRecordOf))
    const killed = startIngest({ reader: own.reader, tables: own.tables, databases: own.databases })
    await vi.waitFor(async () => {
      for (const { committed, end } of await own.reader.lag()) expect(committed).toBe(end)
    }, soon)
    await killed.stop()
    return world
  }

  test.each([
    ['', async () => {}],
    [', also if the tables rested until the batch log had lost it', restTables],
  ])(
    'is not drained until it has folded what an earlier run committed but did not fold%s',
    async (_, rest) => {
      const world = await ingested()
      expect(await readViews(own.tables, own.databases)).toEqual(expectedReading(readModelOf([])))
      await rest(own)
      const { drained } = start()
      await drained()
      expect(await readViews(own.tables, own.databases)).toEqual(expectedReading(readModelOf(world)))
    },
  )

  test('is not drained until it has tried alone what its fold left out because the server was busy', async () => {
    const world = [campaignEvent({ campaign_id: 'a' }), pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })]
    const tables = obstructed(own.tables, {
      before(call) {
        if (isCampaignFold(call) && call.query_params.campaign === undefined) throw timeoutExceeded()
      },
    })
    const { drained } = start({ tables })
    await drained()
    await own.writer.append(world.map(newRecordOf))
    await drained()
    expect(await readViews(own.tables, own.databases)).toEqual(expectedReading(readModelOf(world)))
  })

  test('stops both loops at too many rejects, those of earlier runs too, says why, and writes nothing of that batch until an operator lets them pass', async () => {
    // A run alone stays below the limit with them.
    const bad = Array.from({ length: 15 }, () => noEvent)
    const withPledge = (pledge_id: string) => [
      ...bad,
      newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id })),
    ]
    // The place of the first, the reason, and the way on.
    const tooMany =
      /^Too many of the recent records were rejected.*pledges\/0 offset \d+: the first byte is 9.*PLEDGEVIEW_REJECT_SHARE_MAX=1/
    async function runWith(more: readonly NewRecord[], settings: Record<string, string> = {}) {
      await own.writer.append(more)
      const positions = positionsIn(own)
      const reader = await openJournalReader(own.path, { consumer: 'projector', starts: positions })
      const { service, done, stop } = start({
        ...{ reader, positions },
        settings: { PLEDGEVIEW_REJECTS_MIN: '20', ...settings },
      })
      const hasEnded = async () => service.health().failure !== undefined || (await service.isDrained())
      await vi.waitUntil(hasEnded, soon)
      const isStopped = !(await service.isDrained())
      if (isStopped) await expect(done).rejects.toThrow(tooMany)
      else await stop()
      await reader.close()
      const { ledger } = own.databases
      const pledges = await own.tables.rows({ query: `SELECT 1 FROM ${ledger}.pledge_ledger FINAL` })
      const rejects = await keptRejects(own.tables, own.databases)
      return { isStopped, rejects: rejects.length, pledges: pledges.length }
    }
    for (const round of [1, 2, 3]) {
      const ofRound = { isStopped: round > 1, rejects: bad.length, pledges: 1 }
      expect(await runWith(withPledge(`p${round}`)), `round ${round}`).toEqual(ofRound)
    }
    // The documented way on. Later runs do not count what passed.
    const all = await runWith([], { PLEDGEVIEW_REJECT_SHARE_MAX: '1' })
    expect(all).toEqual({ isStopped: false, rejects: 3 * bad.length, pledges: 3 })
    const later = await runWith(withPledge('p4'))
    expect(later).toEqual({ isStopped: false, rejects: 4 * bad.length, pledges: 4 })
  })

  test('stops both loops if the fold cannot go on', async () => {
    const tables = obstructed(own.tables, {
      before(call) {
        if (isCampaignFold(call)) throw new TablesError('no such column', { retryable: false })
      },
    })
    await own.writer.append(smallWorld().map(newRecordOf))
    const { service, done } = start({ tables })
    await expect(done).rejects.toThrow('no such column')
    expect(service.health().failure).toBe('no such column')
    await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'later' }))])
    const [campaigns] = await service.lag()
    expect(campaigns).toMatchObject({ committed: 3, end: 4 })
  })

  describe('on the probe of its loop', () => {
    /** Time moves only with `before`, which runs before each insert of the ingest loop. */
    function startTimed(before: (insert: number, advance: (ms: number) => void) => Promise<void> | void) {
      let nowMs = 0
      let inserts = 0
      const advance = (ms: number): void => {
        nowMs += ms
      }
      const tables = obstructed(own.tables, {
        before: ({ kind }) => (kind === 'insert' ? before(++inserts, advance) : undefined),
      })
      const settings = { PLEDGEVIEW_RETRY_MS_MAX: '600000', PLEDGEVIEW_BATCH_RECORDS_MAX: '1' }
      return { ...start({ tables, settings, monotonicMs: () => nowMs }), advance, inserts: () => inserts }
    }

    const check = (service: ProjectorService) => loopCheck(service.health())

    test('it is alive while it waits for ClickHouse', async () => {
      await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'a' }))])
      const { service, inserts } = startTimed((insert, advance) => {
        if (insert > 100) return
        advance(10_000)
        throw lostConnection()
      })
      await vi.waitFor(() => expect(inserts()).toBeGreaterThan(6), soon)
      expect(service.health().movedMsAgo).toBeLessThanOrEqual(10_000)
      expect(check(service)).toMatchObject({ ok: true })
    })

    test('it is alive while a batch takes several statements, each as long as its bounds allow', async () => {
      await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'a' }))])
      const seen: boolean[] = []
      const timed: ReturnType<typeof startTimed> = startTimed((_, advance) => {
        advance(600_000)
        seen.push(check(timed.service).ok)
      })
      await timed.drained()
      expect(seen).toEqual(seen.map(() => true))
      expect(seen.length).toBeGreaterThanOrEqual(2)
    })

    test('it is dead if a statement is never answered', async () => {
      const answer = Promise.withResolvers<void>()
      await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'a' }))])
      const { service, advance, inserts } = startTimed(() => answer.promise)
      await vi.waitFor(() => expect(inserts()).toBe(1), soon)
      // One turn more, beside the statement.
      await vi.waitFor(() => {
        advance(service.health().stillMsMax + 1)
        expect(check(service)).toEqual({
          ok: false,
          detail: 'the loop moved 690001 ms ago, at most 690000 ms are allowed',
        })
      }, soon)
      answer.resolve()
    })

    test('it is dead as soon as one of its loops has failed, while another one still ends', async () => {
      const answer = Promise.withResolvers<void>()
      const tables = obstructed(own.tables, {
        before: call => (isCampaignFold(call) ? answer.promise : undefined),
      })
      await own.writer.append(smallWorld().map(newRecordOf))
      const { service, done } = start({ tables, settings: { PLEDGEVIEW_REJECTS_MIN: '1' } })
      await vi.waitFor(() => expect(service.health().records).toBe(5), soon)
      await own.writer.append(Array.from({ length: 10 }, () => noEvent))
      await vi.waitFor(() => expect(service.health().failure).toContain('Too many'), soon)
      expect(check(service)).toEqual({
        ok: false,
        detail: expect.stringMatching(/^the projector stopped: Too many of the recent records/),
      })
      answer.resolve()
      await expect(done).rejects.toThrow('Too many')
    })
  })

  test('waits while another process holds the journal for longer than a call waits', async () => {
    const other = new DatabaseSync(own.path)
    other.exec('BEGIN IMMEDIATE')
    const { done, metrics, drained, stop } = start()
    const retries = async () => (await metrics.retries.get()).values.find(one => one.labels.stage === 'fold')
    await Promise.race([done, expect.poll(retries, soon).toMatchObject({ value: 1 })])
    other.close()
    await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'c1', slug: 'c1' }))])
    await drained()
    await stop()
  })
})

describe('why projectors stopped', () => {
  const own = useProjector()
  const logger = pino({ level: 'silent' })
  const stops = (run: string) => noteStop(own.tables, own.databases, run, new Error(`${run} failed`), logger)
  const stopped = async (options = {}) =>
    (await readProjection(own.tables, own.databases, options)).stopped?.reason ?? null

  test('the leader’s stop counts at once and until another one leads, and none beside it, also after ClickHouse’s clock stepped back', async () => {
    await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'c1', slug: 'c1' }))])
    const first = own.start()
    await first.drained()
    await first.stop()
    // Both are from before the step.
    const later = "now64(3, 'UTC') + INTERVAL 1 HOUR"
    const { base, read } = own.databases
    await own.tables.run({ query: `INSERT INTO ${read}.watermarks (reached) SELECT ${later}` })
    await own.tables.run({
      query: `INSERT INTO ${base}.projector_stops (projector, reason, stopped_at) SELECT 'run-0', '', ${later}`,
    })
    await stops('run-0')
    expect(await stopped()).toBe('run-0 failed')
    await stops('before it led')
    expect(await stopped()).toBe('before it led failed')
    await own.start().drained()
    expect(await stopped()).toBeNull()
    await stops('beside the leader')
    expect(await stopped()).toBeNull()
  })

  test('if none leads, the stop of one that never led is told, and an older one is not', async () => {
    await own.writer.append([newRecordOf(campaignEvent({ campaign_id: 'c1', slug: 'c1' }))])
    await stops('long ago')
    const first = own.start()
    await first.drained()
    await first.stop()
    expect(await stopped({ noneLeads: true })).toBeNull()
    await stops('at its start')
    expect(await stopped()).toBeNull()
    expect(await stopped({ noneLeads: true })).toBe('at its start failed')
    expect(await stopped({ PLEDGEVIEW_KAFKA_SESSION_MS: -60_000 })).toBe('at its start failed')
  })
})
