/**
 * An erasure request on an embedded service, end to end: a creator and a backer are deleted by events, `purge` runs beside the
 * service, and then their texts are in no file, table, log line or new backup.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { CampaignState } from '../../contracts/events/event.ts'
import { openDataDirectory, readServiceAddress } from '../../services/embedded/data-directory.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import type { EventWriter, NewRecord } from '../../services/log/port.ts'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import type { Tables } from '../../services/tables/port.ts'
import { readPurges } from '../../services/tables/schema/identity.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import {
  type CommandResult,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { accountRecord } from '../support/events/accounts.ts'
import { filesWith, personalText, tablesWith, tablesWithOldParts } from '../support/events/find-texts.ts'
import {
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../support/events/sample-events.ts'

// A busy machine is no failure.
const soon = { timeout: 60_000, interval: 50 }
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })
const settings = {
  PLEDGEVIEW_CACHE_MS: '200',
  PLEDGEVIEW_STATS_CACHE_MS: '200',
  PLEDGEVIEW_LOG_LEVEL: 'debug',
}
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']

const creator = {
  creator_id: personalText('creator'),
  name: personalText('name'),
  profile_url: `https://crowdfunding.example/${personalText('profile')}`,
  avatar_url: `https://crowdfunding.example/${personalText('avatar')}`,
}
const description = personalText('description')
const reward = personalText('reward')
const backer = personalText('backer')
const inReject = personalText('reject')
const mailbox = personalText('mailbox')
const texts = [...Object.values(creator), description, reward, backer, inReject, mailbox]

interface PurgedCopy {
  copy: string
  done: string
  left: string | null
  until: string | null
  is_reached: boolean
}

describe('an erasure request', () => {
  const directory = makeDataDirectory()
  const files = openDataDirectory(join(directory.path, 'data'))
  let writer: EventWriter
  let service: ServiceProcess
  let tables: Tables
  let credentials: { key: string; secret: string }

  beforeAll(async () => {
    writer = await openJournalWriter(files.journal)
    service = await startServiceProcess(['--no-demo', '--data-dir', files.root], settings)
    const address = readServiceAddress(files)
    if (!address) throw new Error('the service has left no address')
    tables = openTables(settingsFor(address.clickhouse))
    credentials = JSON.parse((await pledgeview('keys', 'issue', ...identity, '--json')).stdout)
  })

  afterAll(async () => {
    await tables?.close()
    await service?.stop()
    await writer?.close()
    directory.remove()
  })

  const pledgeview = (...args: string[]) => runCli([...args, '--data-dir', files.root], undefined, settings)
  const campaign = (campaign_id: string, state: Partial<CampaignState> = {}) =>
    newRecordOf(campaignEvent({ campaign_id, ...state }))
  const pledge = (campaign_id: string, pledge_id: string, backer_id: string) =>
    newRecordOf(pledgeEvent({ campaign_id, pledge_id, backer_id }))
  const hasCampaign = async (slug: string, text: string) => {
    const headers = { 'x-api-key': credentials.key, 'x-api-secret': credentials.secret }
    const response = await fetch(`${service.apiUrl}/projects/${slug}`, { headers })
    return [response.status, (await response.text()).includes(text)]
  }
  const copiesOf = ({ stdout }: CommandResult) => (JSON.parse(stdout) as { copies: PurgedCopy[] }).copies
  const journalHas = (text: string) => filesWith(files.root, [text]).some(path => path.startsWith('journal'))

  test('begins where the texts are in the journal, the tables, the previous tables and the rejects', async () => {
    const invalid: NewRecord = {
      topic: 'pledges',
      key: Buffer.from('kept/invalid'),
      value: Buffer.from(`not an event, by ${inReject}`),
    }
    await writer.append([
      campaign('gone', { creator, description, rewards: [sampleReward({ reward_id: 'r', title: reward })] }),
      campaign('kept', { creator }),
      campaign('other'),
      pledge('gone', 'p1', backer),
      pledge('kept', 'p2', backer),
      pledge('kept', 'p3', 'another backer'),
      invalid,
    ])
    await vi.waitFor(
      async () => expect(await hasCampaign('slug-gone', description)).toEqual([200, true]),
      soon,
    )
    await vi.waitFor(
      async () => expect(await hasCampaign('slug-kept', creator.name)).toEqual([200, true]),
      soon,
    )
    await writer.append([accountRecord('acct_gone', `${mailbox}@one.example`)])
    const rebuilt = await pledgeview('rebuild')
    expect(rebuilt.code, rebuilt.stderr).toBe(0)
    for (const text of [description, backer, inReject, mailbox]) expect(journalHas(text)).toBe(true)
    await vi.waitFor(
      async () => expect(await tablesWith(tables, [mailbox])).toEqual(['pledgeview.account_ledger']),
      soon,
    )
    // A merge replaces files while they are read.
    const inTables = () =>
      filesWith(files.root, Object.values(creator)).some(path => path.startsWith('tables'))
    await vi.waitFor(() => expect(inTables()).toBe(true), soon)
    expect(await tablesWith(tables, texts)).toEqual(
      expect.arrayContaining([
        'pledgeview_ledger_2.campaign_ledger',
        'pledgeview_read_2.campaigns',
        'pledgeview_read_1.campaigns',
      ]),
    )
  })

  test('is not met by events alone, and a dry run says what a purge would do, and changes nothing', async () => {
    const ofRejects = await pledgeview('purge', '--dry-run', '--rejects', '--json')
    expect(copiesOf(ofRejects)).toContainEqual(
      expect.objectContaining({ copy: 'event log', done: expect.stringContaining('removes 1 record of') }),
    )
    await writer.append([
      newRecordOf(campaignTombstone('gone')),
      newRecordOf(pledgeTombstone('gone', 'p1')),
      newRecordOf(pledgeTombstone('kept', 'p2')),
      newRecordOf(pledgeTombstone('kept', 'invalid')),
      campaign('kept', {
        version: 2,
        creator: {
          ...creator,
          creator_id: 'deleted',
          name: 'Deleted',
          profile_url: 'https://crowdfunding.example/deleted',
          avatar_url: null,
        },
      }),
    ])
    await writer.append([accountRecord('acct_gone', '')])
    await vi.waitFor(
      async () => expect(await hasCampaign('slug-gone', description)).toEqual([404, false]),
      soon,
    )
    await vi.waitFor(
      async () => expect(await hasCampaign('slug-kept', creator.name)).toEqual([200, false]),
      soon,
    )
    const dry = await pledgeview('purge', '--dry-run', '--json')
    expect(dry.code, dry.stderr).toBe(0)
    expect(await readPurges(tables, defaultDatabases)).toBe(0)
    expect(copiesOf(dry)).toContainEqual(
      expect.objectContaining({ copy: 'event log', done: expect.stringContaining('removes 6 records') }),
    )
    expect(copiesOf(dry)).toContainEqual(
      expect.objectContaining({ copy: 'table rejects', done: 'removes 1 row', left: null }),
    )
    for (const text of [description, backer, inReject, mailbox]) expect(journalHas(text)).toBe(true)
    expect(await tablesWith(tables, texts)).toContain('pledgeview_read_1.campaigns')
  })

  test('is met by a purge beside the running service: the texts are in no file, table or log line', async () => {
    const purgedAt = Date.now()
    const purge = await pledgeview('purge', '--json')
    expect(purge.code, `${purge.stderr}${purge.stdout}`).toBe(0)
    expect(JSON.parse(purge.stdout)).toMatchObject({ is_dry_run: false, is_complete: true })
    expect(await readPurges(tables, defaultDatabases)).toBe(1)
    // All copies but the cached answers are empty at once. Of these, ids in lists are left: they say until when.
    const left = copiesOf(purge).filter(copy => copy.left !== null)
    expect(left).toEqual([expect.objectContaining({ copy: 'cached answers', until: expect.any(String) })])
    expect(await tablesWith(tables, texts)).toEqual([])
    expect(await tablesWithOldParts(tables, purgedAt)).toEqual([])
    expect(filesWith(files.root, texts)).toEqual([])
    for (const text of texts) expect(service.output()).not.toContain(text)
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(Date.parse(left[0]?.until ?? '')), soon)
    expect(await hasCampaign('slug-kept', creator.name)).toEqual([200, false])
    expect(await hasCampaign('slug-gone', description)).toEqual([404, false])
  })

  test('leaves a log from which a rebuild makes the same, and a projector that goes on', async () => {
    const rebuilt = await pledgeview('rebuild', '--json')
    expect(rebuilt.code, rebuilt.stderr).toBe(0)
    expect(JSON.parse(rebuilt.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
      outcome: 'rebuilt',
      differences: { same: 2, added: 0, removed: 0, different: 0 },
    })
    await writer.append([campaign('other', { version: 2, title: 'A later title' })])
    await vi.waitFor(
      async () => expect(await hasCampaign('slug-other', 'A later title')).toEqual([200, true]),
      soon,
    )
    expect(await hasCampaign('slug-gone', description)).toEqual([404, false])
  })

  test('is met again without a service, and in a backup made afterwards', async () => {
    await tables.close()
    expect(await service.stop()).toBe(0)
    const purge = await pledgeview('purge')
    expect(purge.code, `${purge.stderr}${purge.stdout}`).toBe(0)
    expect(purge.stdout).toContain('previous tables')
    const restored = join(directory.path, 'restored')
    mkdirSync(restored)
    // A backup is a copy of the whole directory.
    cpSync(files.root, join(restored, 'data'), { recursive: true })
    expect(filesWith(restored, texts)).toEqual([])
    expect(filesWith(restored, ['A later title'])).not.toEqual([])
  })
})
