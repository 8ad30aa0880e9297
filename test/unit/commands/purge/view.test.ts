/** What `pledgeview purge` prints: each copy with what was done, what is left and until when. */
import { describe, expect, test } from 'vitest'
import { reportJson, reportText } from '../../../../services/commands/purge/view.ts'
import { leftOver, type PurgeReport, purged, unreached } from '../../../../services/erasure/report.ts'

const complete: PurgeReport = {
  isDry: false,
  startedAt: '2026-03-01T09:00:00.000Z',
  copies: [
    purged('event log', 'removed 5 records'),
    leftOver('cached answers', 'nothing', 'answers of a moment ago', Date.UTC(2026, 2, 1, 9, 5)),
  ],
}
const incomplete: PurgeReport = {
  ...complete,
  copies: [...complete.copies, unreached('previous tables', 'a rebuild is not finished')],
}

describe('the report of a purge', () => {
  test('is a table with a line for each copy', () => {
    expect(reportText(complete)).toBe(`copy            done               left                     until
event log       removed 5 records  nothing                  -
cached answers  nothing            answers of a moment ago  2026-03-01T09:05:00.000Z
`)
  })

  test('says that a dry run changes nothing, and what to do if something could not be reached', () => {
    expect(reportText({ ...complete, isDry: true })).toMatch(/^copy +it would/)
    expect(reportText(incomplete)).toContain('a rebuild is not finished')
    expect(reportText(incomplete)).toContain('run the same command again')
  })

  test('is one object with --json, which says whether everything was reached', () => {
    expect(reportJson(complete)).toMatchObject({ is_dry_run: false, is_complete: true })
    expect(reportJson(incomplete)).toMatchObject({
      is_complete: false,
      copies: [
        { copy: 'event log', done: 'removed 5 records', left: null, until: null, is_reached: true },
        { copy: 'cached answers', until: '2026-03-01T09:05:00.000Z', is_reached: true },
        { copy: 'previous tables', left: 'a rebuild is not finished', until: null, is_reached: false },
      ],
    })
  })
})
