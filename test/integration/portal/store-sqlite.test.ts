import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openSqliteStore } from '../../../services/portal/store/sqlite-store.ts'
import { testClock } from '../../support/query-app.ts'
import { storeConformance } from './store.conformance.ts'

const root = mkdtempSync(join(tmpdir(), 'portal-store-'))
afterAll(() => rmSync(root, { recursive: true }))
let files = 0

storeConformance({
  name: 'SQLite',
  async open() {
    const path = join(root, `${files++}.sqlite`)
    const clock = testClock()
    const [first, second] = [
      openSqliteStore({ path, now: clock.now }),
      openSqliteStore({ path, now: clock.now }),
    ]
    return { first, second, pass: async ms => clock.advance(ms) }
  },
})

test('sessions outlive a restart', async () => {
  const path = join(root, 'restart.sqlite')
  const before = openSqliteStore({ path, now: Date.now })
  await before.put('session:a', 'one', 60_000)
  await before.close()
  const after = openSqliteStore({ path, now: Date.now })
  expect(await after.get('session:a')).toBe('one')
  await after.close()
})
