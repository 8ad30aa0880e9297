import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { isOutdated, resumedRebuild } from '../../../services/generations/lease.ts'
import type { RebuildDetail, RebuildState } from '../../../services/generations/rebuild-log.ts'
import { wholeRequest } from '../../support/rebuild-request.ts'

const hourMs = 3_600_000
const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

function interrupted(phase: RebuildState['phase'], ageMs: number): RebuildState {
  const detail = { request: wholeRequest, program: version, records: 7, rejects: 1 } as RebuildDetail
  return { id: '1', run: 'killed', phase, detail, writtenAt: '', ageMs, isAborting: false }
}

test('a rebuild that was interrupted for so long that Kafka may have dropped deletions begins again', () => {
  expect(resumedRebuild(interrupted('folding', 11 * hourMs), wholeRequest)).toMatchObject({
    phase: 'folding',
  })
  expect(resumedRebuild(interrupted('folding', 13 * hourMs), wholeRequest)).toMatchObject({
    phase: 'preparing',
    detail: { records: 0, rejects: 0 },
  })
})

test('once it may have swapped tables, only the tables tell whether it has to begin again', () => {
  const old = interrupted('swapping', 13 * hourMs)
  expect(resumedRebuild(old, wholeRequest)).toMatchObject({ phase: 'swapping' })
  expect(isOutdated(old)).toBe(true)
  expect(isOutdated(interrupted('swapping', 11 * hourMs))).toBe(false)
  const { detail } = interrupted('swapping', 0)
  expect(isOutdated({ detail: { ...detail, program: '0.0.1' }, ageMs: 0 })).toBe(true)
  // The previous tables are what they are.
  const request = { ...wholeRequest, kind: 'rollback' as const }
  expect(isOutdated({ detail: { ...detail, request }, ageMs: 13 * hourMs })).toBe(false)
})
