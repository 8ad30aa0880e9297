/** `pledgeview status` beside a service of an earlier version, which reports less. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { statusCommand } from '../../../services/commands/status.ts'
import {
  type DataDirectory,
  openDataDirectory,
  readSecrets,
  writeServiceAddress,
} from '../../../services/local/data-directory.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import { makeDataDirectory } from '../../support/service-process.ts'

/** What a service answered before it named slugs, warnings, misplaced records and the state of ClickHouse. */
const earlierStatus = {
  projector: {
    state: 'running',
    failure: null,
    records: 3,
    rejects: 0,
    lag: [{ topic: 'pledges', partition: 0, committed: 3, end: 3 }],
  },
  fold: { last_finished_at: null, last_elapsed_ms: 0, pending_batches: 0 },
  tables: { public_campaigns: 2, known_campaigns: 2, known_pledges: 1, active_keys: 0 },
}

let temporary: ReturnType<typeof makeDataDirectory>
let directory: DataDirectory
const closers: (() => unknown)[] = []

beforeEach(async () => {
  temporary = makeDataDirectory()
  directory = openDataDirectory(temporary.path)
  readSecrets(directory, { keyPepper: undefined, backerKey: undefined }, count => new Uint8Array(count))
  await (await openJournalWriter(directory.journal)).close()
  const lock = lockDataDirectory(directory.root)
  closers.push(() => lock.release())
  const service = createServer((_, response) => response.end(JSON.stringify(earlierStatus)))
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
  closers.push(() => service.close())
  const { port } = service.address() as AddressInfo
  const clickhouse = { url: 'http://127.0.0.1:9', user: '', password: '' }
  const ops_url = `http://127.0.0.1:${port}`
  writeServiceAddress(directory, { pid: process.pid, port, ops_url, clickhouse })
})

afterEach(async () => {
  for (const closer of closers.splice(0).reverse()) await closer()
  temporary.remove()
})

test('status shows what a service of an earlier version reports, and calls it healthy', async () => {
  let shown = ''
  const write = (text: string) => {
    shown += text
    return true
  }
  const io = { stdout: { write }, stderr: { write } }
  const code = await statusCommand.run(['--data-dir', directory.root], io as never)
  expect(shown).toMatch(/^campaigns +2 public of 2 known$/m)
  expect(code).toBe(0)
})
