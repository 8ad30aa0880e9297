import { describe, expect, test } from 'vitest'
import {
  progressJson,
  resultJson,
  resultText,
  statusJson,
  statusText,
  unfinishedText,
} from '../../../../services/commands/rebuild/view.ts'
import type { Differences } from '../../../../services/generations/differences.ts'
import type { RebuildDetail, RebuildState } from '../../../../services/generations/rebuild-log.ts'
import type { RebuildReport } from '../../../../services/generations/rebuilds.ts'
import { wholeRequest } from '../../../support/generations/rebuild-request.ts'

const reading: RebuildDetail['progress'] = {
  done: 1_770_000,
  of: 4_110_000,
  unit: 'records',
  perSecond: 125_000,
  etaSeconds: 1_207,
  lagRecords: 12_340_000,
}
const differences: Differences = {
  same: 1_200,
  added: 1,
  removed: 2,
  different: 3,
  inMotion: 4,
  fields: { title: 1, pledged_amount: 3 },
  examples: [
    { campaign_id: 'c1', change: 'different', fields: [{ field: 'title', live: 'Old', rebuilt: 'New' }] },
    { campaign_id: 'c2', change: 'removed', fields: [] },
  ],
}

function stateOf(phase: RebuildState['phase'], detail: Partial<RebuildDetail> = {}): RebuildState {
  return {
    id: '20261121',
    attempt: 1,
    generation: 2,
    run: 'run',
    phase,
    writtenAt: '2026-11-21 05:34:00.000',
    ageMs: 31_000,
    detail: {
      request: wholeRequest,
      startedAt: '2026-11-21T05:34:00.000Z',
      phaseMs: { preparing: 100, 'reading log': 2_345 },
      progress: null,
      records: 4_110_000,
      rejects: 0,
      differences: null,
      isFolded: false,
      program: '0',
      failure: null,
      ...detail,
    },
  }
}

function reportOf(state: RebuildState, more: Partial<RebuildReport> = {}): RebuildReport {
  return { ...state, isAlive: false, isPreviousKept: false, isHalfDropped: false, ...more }
}

describe('the end of a rebuild', () => {
  test('says what changed, how to roll back, and how to free the disk', () => {
    const text = resultText(reportOf(stateOf('rebuilt', { differences, rejects: 5 })))
    expect(text).toContain('Rebuilt, in 2.4 s: 4,110,000 records read, 5 of them rejected.')
    expect(text).toContain('Campaigns: 1,200 the same, 1 added, 2 removed, 3 different.')
    expect(text).toContain('4 more changed during the comparison')
    for (const command of ['rebuild rollback', 'rebuild drop'])
      expect(text).toContain(`pledgeview ${command}`)
  })

  test('of a dry run names the fields, most frequent first, and examples field by field', () => {
    const text = resultText(reportOf(stateOf('compared', { differences })))
    expect(text).toContain('The live tables are unchanged')
    expect(text).toMatch(/ {2}pledged_amount {2}3\n {2}title {11}1\n/)
    expect(text).toContain('  c1: different\n    title: Old -> New\n  c2: removed\n')
  })

  test('and its progress can be told apart by a program', () => {
    const lines = [progressJson(stateOf('folding')), resultJson(reportOf(stateOf('rebuilt')))]
    expect(lines).toMatchObject([{ type: 'progress' }, { type: 'result' }])
  })

  test('of an interrupted rollback says how to continue, and how to give it up', () => {
    const text = unfinishedText(
      reportOf(stateOf('verifying', { request: { ...wholeRequest, kind: 'rollback' } })),
    )
    expect(text).toContain('Run pledgeview rebuild rollback again')
    expect(text).toContain('rebuild drop')
  })
})

describe('the status of a rebuild', () => {
  test('of a running one has phase, percent, rate, time left, lag and the phases behind it, also for a program', () => {
    const running = reportOf(stateOf('reading log', { progress: reading, differences }), { isAlive: true })
    expect(statusText(running).split('\n')).toEqual([
      'rebuild      rebuild 20261121, begun 2026-11-21T05:34:00.000Z',
      'phase        reading log',
      'progress     43%, 125,000 records/s, 20:07 left, lag 12,340,000',
      'preparing    0.1 s',
      'process      alive',
      '',
    ])
    const { rebuild } = statusJson(running) as { rebuild: object }
    expect(rebuild).toMatchObject({
      ...{ id: '20261121', outcome: 'running', phase: 'reading log', type: 'rebuild', is_alive: true },
      ...{ seconds: { preparing: 0.1, 'reading log': 2.345 }, records: 4_110_000, rejects: 0 },
      ...{ percent: 43, done: 1_770_000, of: 4_110_000, unit: 'records' },
      ...{ per_second: 125_000, eta_seconds: 1_207, lag_records: 12_340_000 },
      differences: { same: 1_200, different: 3, in_motion: 4 },
    })
  })

  test('of a failed one says that no process works on it, since when, and why', () => {
    const failed = reportOf(stateOf('verifying', { failure: 'campaign c1 is gone' }))
    expect(statusText(failed)).toContain('no process works on it; the last heartbeat was 31 s ago')
    expect(statusText(failed)).toContain('failure      campaign c1 is gone')
    expect(statusJson(failed)).toMatchObject({
      rebuild: { outcome: 'stopped', failure: 'campaign c1 is gone' },
    })
  })
})

test('values of campaigns and messages of failures cannot move the cursor of a terminal', () => {
  const hostile = '\u001b[2J\u009b1A\u202e'
  const examples: Differences['examples'] = [
    {
      campaign_id: `c${hostile}`,
      change: 'different',
      fields: [{ field: 'title', live: `Old${hostile}`, rebuilt: `New${hostile}\n  c2: removed` }],
    },
  ]
  const compared = stateOf('compared', { differences: { ...differences, examples } })
  const failed = stateOf('preparing', { failure: `it failed${hostile}` })
  const report = { isAlive: false, isPreviousKept: false, isHalfDropped: false }
  for (const text of [resultText({ ...report, ...compared }), statusText({ ...report, ...failed })]) {
    expect(text).toContain('\\u{1b}[2J\\u{9b}1A\\u{202e}')
    for (const raw of ['\u001b', '\u009b', '\u202e']) expect(text).not.toContain(raw)
    expect(text).not.toContain('\n  c2: removed')
  }
})
