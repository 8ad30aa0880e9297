/**
 * An erasure request on an embedded service, end to end: a creator and a backer are deleted by events, `purge` runs beside the
 * service, and then their texts are in no file, table, log line or new backup. And `rebuild`, beside the service and without it, as its
 * users run it: killed, refused, interrupted and continued. What it changes: test/integration/generations.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { CampaignState } from '../../contracts/events/event.ts'
import { openDataDirectory, serviceAddress } from '../../services/embedded/data-directory.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import type { EventWriter, NewRecord } from '../../services/log/port.ts'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import type { Tables } from '../../services/tables/port.ts'
import { readPurges } from '../../services/tables/schema/identity.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import {
  type CommandResult,
  launchProcess,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import { accountRecord } from '../support/events/accounts.ts'
import { filesWith, personalText, tablesWith, tablesWithOldParts } from '../support/events/find-texts.ts'
import { issueCredentials } from '../support/events/kickstarter.ts'
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
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
}

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
}

describe('an erasure request', () => {
  const directory = makeDataDirectory()
  const files = openDataDirectory(join(directory.path, 'data'))
  let writer: EventWriter
  let service: ServiceProcess
  let tables: Tables
  let headers: Record<string, string>

  beforeAll(async () => {
    writer = await openJournalWriter(files.journal)
    service = await start(files.root)
    const address = serviceAddress.read(files)
    if (!address) throw new Error('the service has left no address')
    tables = openTables(settingsFor(address.clickhouse))
    headers = await issueCredentials(args => pledgeview(...args), 'a')
  })

  afterAll(async () => {
    await tables?.close()
    await service?.stop()
    await writer?.close()
    directory.remove()
  })

  const start = (root: string) => startServiceProcess(['--no-demo', '--data-dir', root], settings)
  const pledgeview = (...args: string[]) => runCli([...args, '--data-dir', files.root], undefined, settings)
  const campaign = (campaign_id: string, state: Partial<CampaignState> = {}) =>
    newRecordOf(campaignEvent({ campaign_id, ...state }))
  const pledge = (campaign_id: string, pledge_id: string, backer_id: string) =>
    newRecordOf(pledgeEvent({ campaign_id, pledge_id, backer_id }))
  const hasCampaign = async (slug: string, text: string) => {
    const response = await fetch(`${service.apiUrl}/projects/${slug}`, { headers })
    return [response.status, (await response.text()).includes(text)]
  }
  /** A rebuild that has begun to read, for so long that there is time to act before it ends. */
  const slowRebuild = async () => {
    const slowly = { ...settings, PLEDGEVIEW_BATCH_RECORDS_MAX: '1' }
    return launchProcess(['rebuild', '--json', '--data-dir', files.root], slowly, 'reading log').started
  }
  const rebuilt = async () => {
    const { code, stdout, stderr } = await pledgeview('rebuild', '--json')
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
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
    await expect.poll(() => hasCampaign('slug-gone', description), soon).toEqual([200, true])
    await expect.poll(() => hasCampaign('slug-kept', creator.name), soon).toEqual([200, true])
    await writer.append([accountRecord('acct_gone', `${mailbox}@one.example`)])
    await rebuilt()
    for (const text of [description, backer, inReject, mailbox]) expect(journalHas(text)).toBe(true)
    await expect.poll(() => tablesWith(tables, [mailbox]), soon).toEqual(['pledgeview.account_ledger'])
    // A merge replaces files while they are read.
    const inTables = () =>
      filesWith(files.root, Object.values(creator)).some(path => path.startsWith('tables'))
    await expect.poll(inTables, soon).toBe(true)
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
    await expect.poll(() => hasCampaign('slug-gone', description), soon).toEqual([404, false])
    await expect.poll(() => hasCampaign('slug-kept', creator.name), soon).toEqual([200, false])
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

  test('leaves a log from which a rebuild makes the same, also one that is killed, and a projector that goes on', async () => {
    await writer.append(Array.from({ length: 600 }, (_, n) => pledge('other', `q${n}`, 'another backer')))
    const killed = await slowRebuild()
    const refused = { code: 1, stderr: expect.stringContaining('interrupt its command') }
    expect(await pledgeview('rebuild', 'drop')).toMatchObject(refused)
    await killed.stop('SIGKILL')
    // Who reads all files has taken this process's locks from the journal. So it is not open here while the service ends.
    await writer.close()
    await service.stop()
    service = await start(files.root)
    writer = await openJournalWriter(files.journal)
    const { id } = JSON.parse(/^\{.*\}$/m.exec(killed.output())?.[0] ?? '')
    const differences = { same: 2, added: 0, removed: 0, different: 0 }
    expect(await rebuilt()).toMatchObject({ id, outcome: 'rebuilt', differences })
    // A promotion is no second projector.
    expect(service.output()).not.toContain('another projector')
    await writer.append([campaign('other', { version: 2, title: 'A later title' })])
    await expect.poll(() => hasCampaign('slug-other', 'A later title'), soon).toEqual([200, true])
    expect(await hasCampaign('slug-gone', description)).toEqual([404, false])
  })

  test('is met again without a service, also after a rebuild that was interrupted, and in a backup made afterwards', async () => {
    await tables.close()
    expect(await service.stop()).toBe(0)
    // The tables from before the rebuild are kept until they are dropped.
    const refused = { code: 1, stdout: '', stderr: expect.stringContaining('pledgeview rebuild drop') }
    expect(await pledgeview('rebuild')).toMatchObject(refused)
    expect(await pledgeview('rebuild', 'drop')).toMatchObject({ code: 0 })
    const interrupted = await slowRebuild()
    expect(await interrupted.stop('SIGINT')).toBe(1)
    expect(interrupted.output()).toContain('Run the same command again to continue')
    const status = { code: 0, stdout: expect.stringContaining('it was interrupted') }
    expect(await pledgeview('rebuild', 'status')).toMatchObject(status)
    expect(await rebuilt()).toMatchObject({ outcome: 'rebuilt', differences: { same: 2 } })
    const purge = await pledgeview('purge')
    expect(purge.code, `${purge.stderr}${purge.stdout}`).toBe(0)
    expect(purge.stdout).toContain('previous tables')
    const restored = join(directory.path, 'restored')
    mkdirSync(restored)
    // A backup is a copy of the whole directory.
    cpSync(files.root, join(restored, 'data'), { recursive: true })
    expect(filesWith(restored, texts)).toEqual([])
    service = await start(join(restored, 'data'))
    await expect.poll(() => hasCampaign('slug-other', 'A later title'), soon).toEqual([200, true])
  })
})
