/**
 * The tables of a data directory, put back from an older copy while the journal went on: no deletion is undone, and no revoked key is
 * accepted. A journal that remembers nothing of the lost tables is told by `pledgeview restored`.
 */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { openDataDirectory } from '../../services/local/data-directory.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import { issueCredentials } from '../support/kickstarter.ts'
import { campaignEvent, campaignTombstone, newRecordOf } from '../support/sample-events.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/service-process.ts'

// A busy machine is no failure.
const soon = { timeout: 60_000, interval: 50 }
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })
const settings = { PLEDGEVIEW_CACHE_MS: '200' }
const wentBack = 'the tables went back'

describe('tables of a data directory that were put back from an older copy', () => {
  const directory = makeDataDirectory()
  const files = openDataDirectory(join(directory.path, 'data'))
  const copy = join(directory.path, 'copy')
  let service: ServiceProcess
  let kept: Record<string, string>
  let revoked: Record<string, string>
  let stamp: string

  const start = async () => {
    service = await startServiceProcess(['--no-demo', '--data-dir', files.root], settings)
  }
  const command = (args: readonly string[]) => runCli([...args, '--data-dir', files.root])
  const ask = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(`${service.apiUrl}${path}`, { headers })
    return { status: response.status, body: (await response.json()) as { data?: { updated_at: string } } }
  }
  const statuses = async () => [
    (await ask('/projects/slug-same', kept)).status,
    (await ask('/projects/slug-gone', kept)).status,
    (await ask('/projects/slug-same', revoked)).status,
  ]
  const untilStatuses = (...expected: number[]) =>
    vi.waitFor(async () => expect(await statuses()).toEqual(expected), soon)
  const stampOfSame = async () => (await ask('/projects/slug-same', kept)).body.data?.updated_at ?? ''

  async function append(...events: ChangeEvent[]): Promise<void> {
    const writer = await openJournalWriter(files.journal)
    await writer.append(events.map(newRecordOf))
    await writer.close()
  }

  function putBack(): void {
    rmSync(files.tables, { recursive: true })
    cpSync(copy, files.tables, { recursive: true })
  }

  beforeAll(async () => {
    await start()
    await append(campaignEvent({ campaign_id: 'same' }), campaignEvent({ campaign_id: 'gone' }))
    kept = await issueCredentials(command, 'kept')
    revoked = await issueCredentials(command, 'revoked')
    await untilStatuses(200, 200, 200)
    await service.stop()
    cpSync(files.tables, copy, { recursive: true })

    await start()
    await append(campaignTombstone('gone'))
    const { code, stderr } = await command(['keys', 'revoke', revoked['X-API-Key'] ?? ''])
    expect(code, stderr).toBe(0)
    await untilStatuses(200, 404, 401)
    stamp = await stampOfSame()
    await service.stop()
    expect(service.output()).not.toContain(wentBack)
  })

  afterAll(async () => {
    await service?.stop()
    directory.remove()
  })

  test('are noticed at the start, and what was deleted and revoked since the copy stays so', async () => {
    putBack()
    await start()
    await untilStatuses(200, 404, 401)
    expect(service.output()).toContain(wentBack)
    // It was read again, so a poller that saw what the copy lacks asks once more.
    await vi.waitFor(async () => expect((await stampOfSame()) > stamp).toBe(true), soon)
    await service.stop()
  })

  test('are told of by a command if the journal remembers nothing, and not while a service runs', async () => {
    await start()
    await untilStatuses(200, 404, 401)
    stamp = await stampOfSame()
    const refused = await command(['restored'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('in use by another process') })
    await service.stop()

    putBack()
    const journal = new DatabaseSync(files.journal)
    journal.exec('DELETE FROM positions; DELETE FROM consumers')
    journal.close()
    const { code, stdout, stderr } = await command(['restored'])
    expect(code, stderr).toBe(0)
    expect(stderr).toContain(wentBack)
    expect(stdout).toContain('campaigns/0 is read again from 1\n')

    await start()
    await untilStatuses(200, 404, 401)
    await vi.waitFor(async () => expect((await stampOfSame()) > stamp).toBe(true), soon)
    // The command has noted it already.
    expect(service.output()).not.toContain(wentBack)
  })
})
