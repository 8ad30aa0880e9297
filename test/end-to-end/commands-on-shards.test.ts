/**
 * The operator's commands on a cluster of two shards: explain, status and purge. What concerns both shards is
 * done on both, and a command that cannot reach both says so. `migrate` is not here: on a cluster
 * it needs Keeper. A rebuild of shards is in test/integration/generations/shards.
 */
import { randomBytes } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import type { ShardServers } from '../support/clickhouse/shards.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import { outputOf, whenFolded } from '../support/deployment/status.ts'
import { filesWith, tablesWith, tablesWithOldParts } from '../support/events/find-texts.ts'
import { untilLeads } from '../support/events/kickstarter.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../support/events/sample-events.ts'

// Only a hang takes this long, also on a busy machine.
const soon = { timeout: 180_000, interval: 100 }
vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 })

const campaigns = 20
const ids = Array.from({ length: campaigns }, (_, index) => `c${index}`)

describe('the commands on two shards', () => {
  let shards: ShardServers
  let deployment: Deployment

  useLocalDeployment({
    shards: 2,
    settings: { PLEDGEVIEW_CACHE_MS: '1000' },
    prepare: async local => {
      deployment = local.deployment
      shards = local.services.shards as ShardServers
      await untilLeads(await deployment.startProjector())
      await append(
        ...ids.flatMap(id => [
          campaignEvent({ campaign_id: id, slug: `slug-${id}` }),
          pledgeEvent({ campaign_id: id, pledge_id: 'p1' }),
        ]),
      )
    },
  })

  async function append(...events: ChangeEvent[]): Promise<void> {
    const { code, stderr } = await deployment.command(
      ['events', 'append', '-'],
      `${events.map(formatEvent).join('\n')}\n`,
    )
    expect(code, stderr).toBe(0)
  }

  const json = <T>(...args: string[]) => outputOf<T>(deployment, args)
  const drained = () => whenFolded(deployment, soon)

  /** The campaigns of each shard. */
  async function ofShards(): Promise<string[][]> {
    return Promise.all(
      shards.shards.map(async ({ tables, databases }) => {
        const rows = await tables.rows<{ id: string }>({
          query: `SELECT campaign_id AS id FROM ${databases.ledger}.campaign_ledger FINAL ORDER BY id`,
        })
        return rows.map(({ id }) => id)
      }),
    )
  }

  test('explain finds a campaign on the shard that has it', async () => {
    await drained()
    for (const id of ids.slice(0, 6)) {
      expect(await json('explain', `slug-${id}`)).toMatchObject({
        campaign_id: id,
        shown: { pledges: 1 },
        why: ['What is shown is what the ledger says.'],
      })
    }
    expect((await ofShards()).every(shard => shard.some(id => ids.slice(0, 6).includes(id)))).toBe(true)
  })

  test('status counts what all shards have', async () => {
    const { tables } = await drained()
    expect(tables).toMatchObject({ public_campaigns: campaigns, known_pledges: campaigns })
    const held = await ofShards()
    for (const of of held) expect(of.length).toBeGreaterThan(0)
    expect(held.flat().sort()).toEqual([...ids].sort())
  })

  test.each([
    ['one URL for two shards', (urls: string[]) => urls[0] ?? '', 'has 2 shards, and 1 URLs are given'],
    ['one shard twice', (urls: string[]) => `${urls[0]},${urls[0]}`, 'two URLs lead to the shard shard-1'],
  ])('with %s, a command that works on each shard refuses, and says why', async (_, given, reason) => {
    const urls = (shards.environment.PLEDGEVIEW_CLICKHOUSE_SHARD_URLS ?? '').split(',')
    const wrong = { PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: given(urls) }
    for (const args of [['status'], ['purge', '--dry-run'], ['projector']]) {
      const { code, stdout, stderr } = await deployment.command(args, undefined, wrong)
      expect({ args, code }).toEqual({ args, code: 1 })
      expect(stdout + stderr, args[0]).toContain(reason)
    }
  })

  test('purge leaves no text of what was deleted on any shard, and names what it did on each', async () => {
    const gone = (await ofShards()).map(([, id = '']) => id)
    const texts = gone.map(() => `creator-${randomBytes(24).toString('hex')}`)
    await append(
      ...gone.map((id, shard) =>
        campaignEvent({ campaign_id: id, slug: `slug-${id}`, version: 5, description: texts[shard] ?? '' }),
      ),
    )
    await drained()
    for (const { tables } of shards.shards)
      expect(await tablesWith(tables, texts)).toContain('pledgeview_read_1.campaigns')
    await append(...gone.flatMap(id => [campaignTombstone(id), pledgeTombstone(id, 'p1')]))
    await drained()
    const { copies, is_complete } = await json<{
      is_complete: boolean
      copies: { copy: string; done: string }[]
    }>('purge')
    expect(is_complete).toBe(true)
    for (const [index, { tables }] of shards.shards.entries()) {
      const named = copies.filter(({ copy }) => copy.startsWith(`shard ${index + 1}, `))
      for (const table of ['campaigns', 'campaign_ledger', 'pledge_ledger'])
        expect(named.map(({ copy }) => copy)).toContain(`shard ${index + 1}, table ${table}`)
      expect(await tablesWith(tables, texts)).toEqual([])
      expect(await tablesWithOldParts(tables)).toEqual([])
      expect(filesWith(shards.servers[index]?.directory ?? '', texts)).toEqual([])
    }
    expect((await drained()).tables.public_campaigns).toBe(campaigns - gone.length)
  })
})
