import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resumedRebuild } from '../../../services/generations/begin.ts'
import type { RebuildDetail, RebuildState } from '../../../services/generations/rebuild-log.ts'
import { wholeRequest } from '../../support/generations/rebuild-request.ts'

const hourMs = 3_600_000
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

function interrupted(phase: RebuildState['phase'], ageMs: number): RebuildState {
  const detail = { request: wholeRequest, program: version, records: 7, rejects: 1 } as RebuildDetail
  const [attempt, generation] = [1, 2]
  return {
    id: '1',
    attempt,
    generation,
    run: 'killed',
    phase,
    detail,
    writtenAt: '',
    ageMs,
  }
}

const standing = { from: 1, isGone: false }
const anew = { generation: 0, phase: 'preparing', detail: { records: 0, rejects: 0 } }

test('a rebuild that was interrupted for so long that Kafka may have dropped deletions begins again', () => {
  const soon = interrupted('folding', 11 * hourMs)
  expect(resumedRebuild(soon, wholeRequest, standing)).toMatchObject({ generation: 2, phase: 'folding' })
  expect(resumedRebuild(interrupted('folding', 13 * hourMs), wholeRequest, standing)).toMatchObject(anew)
})

test('so does one whose generation is half dropped; a rollback to it is refused', () => {
  const open = interrupted('verifying', 0)
  expect(resumedRebuild(open, wholeRequest, { ...standing, isGone: true })).toMatchObject(anew)
  const request = { ...wholeRequest, kind: 'rollback' as const }
  const back = { ...open, detail: { ...open.detail, request } }
  expect(() => resumedRebuild(back, request, { ...standing, isGone: true })).toThrow(
    'the previous tables were dropped',
  )
})

test('so does one of another version of the program, but none that was promoted, and no rollback', () => {
  const state = interrupted('folding', 0)
  const older = { ...state, detail: { ...state.detail, program: '0.0.1' } }
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
})
