/** Proves when a data directory with tables but without a secrets file gets new secrets, and when it is refused. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrateCommand } from '../../../services/commands/migrate.ts'
import { openDataDirectory } from '../../../services/local/data-directory.ts'
import { openEmbeddedModel } from '../../../services/local/model.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'

let directory: TestDirectory

beforeEach(() => {
  directory = makeTestDirectory()
})

afterEach(() => directory.remove())

test('migrate may run before the first start, which then makes the secrets and keeps them', async () => {
  const io = { stdout: { write: () => true }, stderr: { write: () => true } }
  expect(await migrateCommand.run(['--data-dir', directory.path], io as never)).toBe(0)
  const first = await open()
  await first.close()
  const again = await open()
  expect(again.secrets).toEqual(first.secrets)
  await again.close()
})

test('tables whose service has only started are refused without their secrets, and none are made, not even by the next start', async () => {
  await (await open()).close()
  for (const name of ['secrets.json', 'identity.json']) rmSync(join(directory.path, name))
  for (const _ of [1, 2]) {
    await expect(open()).rejects.toThrow('restore it from the backup')
    for (const name of ['secrets.json', 'identity.json'])
      expect(existsSync(join(directory.path, name)), name).toBe(false)
  }
})

function open() {
  return openEmbeddedModel({
    directory: openDataDirectory(directory.path),
    config: readConfig({}),
    metrics: createMetrics(),
    logger: pino({ level: 'silent' }),
  })
}
