import { describe, expect, test } from 'vitest'
import {
  detailOf,
  persistedDetail,
  persistedPhase,
  phaseOf,
} from '../../../services/rebuild/persisted-words.ts'
import { endPhases, type RebuildDetail, workPhases } from '../../../services/rebuild/rebuild-log.ts'
import { wholeRequest } from '../../support/rebuild-request.ts'

const detail: RebuildDetail = {
  request: { ...wholeRequest, kind: 'rollback' },
  startedAt: '2026-11-21T05:34:00.000Z',
  phaseMs: { preparing: 100, swapping: 7 },
  progress: null,
  records: 3,
  rejects: 0,
  logStart: 0,
  differences: null,
  tableIds: null,
  unstampedSince: null,
  positions: null,
  program: '0',
  failure: null,
}
// A row that an earlier version of the program wrote.
const old = JSON.stringify({
  ...detail,
  request: { ...wholeRequest, kind: 'back' },
  phaseMs: { preparing: 100, exchanging: 7 },
})

describe('the words of the rebuild log', () => {
  test('of an earlier version are understood', () => {
    expect(phaseOf('exchanging')).toBe('swapping')
    expect(detailOf(old)).toEqual(detail)
  })

  test('are written so that an earlier version understands them', () => {
    expect(persistedPhase('swapping')).toBe('exchanging')
    expect(persistedDetail(detail)).toBe(old)
  })

  test('are read as they were meant, in either form', () => {
    for (const phase of [...workPhases, ...endPhases]) {
      expect(phaseOf(persistedPhase(phase))).toBe(phase)
      expect(phaseOf(phase)).toBe(phase)
    }
    expect(detailOf(persistedDetail(detail))).toEqual(detail)
    expect(detailOf(JSON.stringify(detail))).toEqual(detail)
  })
})
