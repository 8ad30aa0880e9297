/**
 * The restores of deploy/restore.md, on real brokers and real ClickHouse servers. The tables are lost: the projectors notice that those of
 * last night's backup went back, and read the log again; without any backup, they fill new tables, as for another number of shards, and
 * can return to the old ones. Kafka is lost: a new, empty one is filled from last night's copy of the topics, and nothing changes for a
 * reader. Both are lost: the deletions since then are appended again first. What was deleted or revoked stays so.
 */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { fencesOf, readGuide } from '../../guides/blocks.ts'
import { askClickHouse, type ClickHouse } from '../../support/clickhouse/clickhouse.ts'
import {
  asOf,
  changes,
  deletions,
  type Headers,
  lines,
  pollTimes,
  tombstone,
  useNight,
} from '../../support/deployment/night.ts'
import {
  onTables,
  type SeenCampaign,
  sameWhile,
  seenCampaigns,
} from '../../support/deployment/seen-campaigns.ts'
import type { ServiceProcess } from '../../support/deployment/service-process.ts'
import type { StatusOutput } from '../../support/deployment/status.ts'
import { untilDrained } from '../../support/events/kickstarter.ts'
import { campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { copyPositions, restoreTopics } from '../../support/kafka/topic-copy.ts'

const group = 'pledgeview-projector'

vi.setConfig({ testTimeout: 480_000, hookTimeout: 480_000 })

const night = useNight()
const { known } = night
const idsOf = (rows: readonly SeenCampaign[]) => rows.map(({ id }) => id)
const said = ({ id, title, backers }: SeenCampaign) => [id, title, backers]

describe('the tables are lost', () => {
  let moved: Headers
  let restored: ClickHouse
  let outputs: string[]
  let beforeStart: StatusOutput
  let anew: ClickHouse

  beforeAll(async () => {
    if (!night.isMet()) return
    const tables = await night.newTables('the backup')
    ;[moved, restored] = [tables.settings, tables.server]
    const { stdout } = await night.deployment().command(['status', '--json'], '', moved)
    beforeStart = JSON.parse(stdout)
    // Both get some of the partitions.
    outputs = (await startTwo(moved)).map(one => one.output())
  })

  test('is noticed: the status counts what the tables lack, and a projector says that its partitions went back', async () => {
    const { lag } = beforeStart.projector
    expect(lag.some(({ committed, end }) => committed < end)).toBe(true)
    // One of them at least says it, perhaps both, and perhaps more than once.
    expect(outputs.join('')).toContain('the tables went back: lists have shown changes up to')
  })

  test('a backup has what came after it, and undoes no deletion', async () => {
    const after = await seenCampaigns(restored)
    expect(after.map(said)).toEqual(known.before.map(said))
    expect(idsOf(after)).toEqual(['changed', 'new', 'pledged', 'same'])
  })

  test('a backup keeps the stamp of what was read long before it, and a poller gets the rest again', async () => {
    const watermark = await onTables(night.server(), asOf)
    for (const { id, updated_at } of await seenCampaigns(restored)) {
      if (id === 'same') expect(updated_at).toBe(known.before.find(one => one.id === id)?.updated_at)
      else expect(updated_at.localeCompare(watermark), id).toBe(1)
    }
  })

  test('a key that was revoked after the backup is refused, and the others are accepted', async () => {
    const query = await night.deployment().startQuery(moved)
    expect(await night.statusesOf(query)).toEqual({ kept: 200, late: 200, revoked: 401 })
    await query.stop()
  })

  test('the restore is over after the first start: the next projector reads on', async () => {
    const projector = await night.startDrained(moved)
    await projector.stop()
    expect(projector.output()).not.toContain('the tables went back')
  })

  test('without a backup fills new tables with everything that the log has', async () => {
    const tables = await night.newTables('nothing')
    anew = tables.server
    // The second may be given its partitions after the first has filled tables.
    const projectors = await startTwo(tables.settings, async running => {
      const rows = await seenCampaigns(anew)
      expect(idsOf(rows)).toEqual(idsOf(known.before))
      // A poller that goes on with its watermark from the other tables fetches them all.
      const passed = await onTables(restored, asOf)
      expect(rows.filter(({ updated_at }) => updated_at < passed)).toEqual([])
      await night.append(lines(campaignEvent({ campaign_id: 'later' })))
      await untilDrained(...running)
    })
    expect(projectors).toHaveLength(2)
  })

  test('on the way back to the old tables, these are read again as after a restore, with stamps that no poller of the new ones has passed', async () => {
    const unchanged = (await seenCampaigns(restored)).find(({ id }) => id === 'same')
    const watermark = await onTables(anew, asOf)
    const projector = await night.startDrained(moved)
    await projector.stop()
    expect(projector.output()).toContain('the tables went back')
    const after = await seenCampaigns(restored)
    expect(idsOf(after)).toEqual(['changed', 'later', 'new', 'pledged', 'same'])
    for (const { id, updated_at } of after) {
      if (id === 'same') expect(updated_at).toBe(unchanged?.updated_at)
      else expect(updated_at >= watermark, id).toBe(true)
    }
  })

  /** Starts two projectors, and stops them when everything is folded and this is done. */
  async function startTwo(
    settings: Headers,
    then = async (_: readonly ServiceProcess[]) => {},
  ): Promise<readonly ServiceProcess[]> {
    const start = () => night.deployment().startProjector(settings)
    const projectors = await Promise.all([start(), start()])
    await untilDrained(...projectors)
    await then(projectors)
    await Promise.all(projectors.map(one => one.stop()))
    return projectors
  }
})

describe('Kafka is lost, and ClickHouse is there', () => {
  /** Fails if a reader sees anything but `before` at any moment of the work, or at its end. */
  const unchangedWhile = <T>(work: () => Promise<T>): Promise<T> =>
    sameWhile(night.server(), known.before, work)

  beforeAll(async () => {
    if (!night.isMet()) return
    await night.newKafka()
    await restoreTopics(night.kafka(), known.copy)
  })

  test('the copy is read from its start, and nothing changes for a reader: no deletion is undone', async () => {
    const projector = await unchangedWhile(() => night.startDrained())
    await projector.stop()
    expect(known.before.map(said)).toEqual([
      ['changed', 'Changed after the copy', 0],
      ['new', 'Title of new', 0],
      ['pledged', 'Title of pledged', 1],
      ['same', 'Title of same', 0],
    ])
    expect((await night.poll()).ids).toEqual([])
  })

  test('a key that was revoked after the copy stays refused, and one that was issued after it stays accepted', async () => {
    expect(await night.statusesOf(known.query)).toEqual({ kept: 200, late: 200, revoked: 401 })
  })

  test('the keys of the tables are events for the new log: those that work, and a tombstone for the revoked one', async () => {
    const fence = fencesOf(readGuide('deploy/restore.md')).find(({ text }) =>
      text.includes("'api-key' AS type"),
    )
    const asked = fence?.text.split(';').map(statement => askClickHouse(night.server(), statement))
    const events = (await Promise.all(asked ?? [])).join('')
    const isActive = (name: 'kept' | 'revoked' | 'late') => {
      const line = events.split('\n').find(text => text.includes(known.keys[name]['X-API-Key'] ?? ''))
      return JSON.parse(line ?? '{}').data?.status === 'ACTIVE'
    }
    expect([isActive('kept'), isActive('revoked'), isActive('late')]).toEqual([true, false, true])
    await night.append(events)
  })

  test('what the platform publishes again changes nothing, and what comes after it is projected', async () => {
    const projector = await unchangedWhile(async () => {
      await night.append(`${changes}${deletions}`)
      return night.startDrained()
    })
    await night.append(lines(pledgeEvent({ campaign_id: 'new', pledge_id: 'r' })))
    await untilDrained(projector)
    const after = await seenCampaigns(night.server())
    expect(after.filter(({ id }) => id !== 'new')).toEqual(known.before.filter(({ id }) => id !== 'new'))
    expect(after.find(({ id }) => id === 'new')).toMatchObject({ backers: 1 })
    await vi.waitFor(async () => expect((await night.poll()).ids).toEqual(['new']), pollTimes)
    await projector.stop()
  })
})

test('both are lost: the deletions since the copies are appended again before anyone reads, and none is undone', async () => {
  await known.query.stop()
  await night.newKafka()
  await restoreTopics(night.kafka(), known.copy)
  const { server, settings } = await night.newTables('the backup')
  // Also if a mirror has copied the positions of the group: the tables have those of the lost Kafka.
  await copyPositions(night.kafka(), group)
  await night.append(`${deletions}${tombstone('api-key', known.keys.revoked['X-API-Key'] ?? '')}`, settings)
  const projector = await night.startDrained(settings)
  expect((await seenCampaigns(server)).map(said)).toEqual([
    ['changed', 'Title of changed', 0],
    ['pledged', 'Title of pledged', 1],
    ['same', 'Title of same', 0],
  ])
  const query = await night.deployment().startQuery(settings)
  // A key that was issued after both copies is lost, too: its owner needs a new one.
  expect(await night.statusesOf(query)).toEqual({ kept: 200, late: 401, revoked: 401 })

  await night.append(changes, settings)
  await untilDrained(projector)
  expect((await seenCampaigns(server)).map(said)).toEqual(known.before.map(said))
  await projector.stop()
})
