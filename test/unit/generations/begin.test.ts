import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resumedRebuild } from '../../../services/generations/begin.ts'
import {
  findOwner,
  type RebuildDetail,
  type RebuildState,
} from '../../../services/generations/rebuild-log.ts'
import { wholeRequest } from '../../support/generations/rebuild-request.ts'

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

const interrupted: RebuildState = {
  ...{ id: '1', attempt: 1, generation: 2, run: 'killed', phase: 'folding', writtenAt: '', ageMs: 0 },
  detail: { request: wholeRequest, program: '0.0.1', records: 7, rejects: 1 } as RebuildDetail,
}

const standing = { from: 1, isGone: false }
const anew = { generation: 0, phase: 'preparing', detail: { records: 0, rejects: 0 } }

test('a rebuild of another version of the program begins again, but none that was promoted, and no rollback; one to dropped tables is refused', () => {
  const older = interrupted
  const present = { ...older, detail: { ...older.detail, program: version } }
  expect(resumedRebuild(present, wholeRequest, standing)).toMatchObject({ generation: 2, phase: 'folding' })
  expect(resumedRebuild(older, wholeRequest, standing)).toMatchObject(anew)
  expect(resumedRebuild({ ...older, phase: 'promoting' }, wholeRequest, standing)).toMatchObject(anew)
  const promoted = { ...standing, from: 2 }
  expect(resumedRebuild({ ...older, phase: 'promoting' }, wholeRequest, promoted)).toMatchObject({
    generation: 2,
  })
  // What the previous generation has was read by the rules of its time.
  const request = { ...wholeRequest, kind: 'rollback' as const }
  const back = { ...older, detail: { ...older.detail, request } }
  expect(resumedRebuild(back, request, standing)).toMatchObject({ generation: 2 })
  expect(() => resumedRebuild(back, request, { ...standing, isGone: true })).toThrow(
    'the previous tables were dropped',
  )
})

test('a rebuild is not dead because the answer to a look came late', async () => {
  const { id, phase, detail } = interrupted
  const written = JSON.stringify({ id, phase, detail: { ...detail, failure: null } })
  let now = 0
  const looks = [{ at: 'a' }, { at: 'a', tookMs: 12_000 }, { at: 'b' }]
  const rows = async () => {
    const { at, tookMs = 0 } = looks.shift() ?? { at: 'b' }
    now += tookMs
    return [{ attempt: 1, generation: 2, run: 'alive', detail: written, writtenAt: at, ageMs: 100 }]
  }
  const log = { tables: { rows }, base: 'pledgeview' } as unknown as Parameters<typeof findOwner>[0]
  const sleep = async (ms: number) => {
    now += ms
  }
  const found = await findOwner(log, { isAlone: false, monotonicMs: () => now, sleep })
  expect(found).toMatchObject({ isOwned: true, latest: { writtenAt: 'b' } })
})
