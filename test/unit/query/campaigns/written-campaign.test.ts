/** The text of a page that is put together from written campaigns, compared with the body that passes the schema as a whole. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { publicStatuses } from '../../../../contracts/events/event.ts'
import {
  presentProject,
  projectRowOf,
  writeCampaign,
} from '../../../../services/query/campaigns/campaign-fields.ts'
import { pageText } from '../../../../services/query/endpoints/open.ts'
import { projectListBodySchema } from '../../../../services/query/endpoints/projects.ts'
import { detailRow } from '../../../support/query/fake-tables.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '"days_remaining":',
    '\\"days_remaining":9',
    '{"days_remaining":1}',
    '$&',
    '\ud800',
    '</script>',
  ),
)
const moment = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2200, 0) })
const clickHouseTime = moment.map(ms => new Date(ms).toISOString().replace('T', ' ').slice(0, -1))
const row = fc
  .record({
    campaign_id: text,
    title: text,
    subtitle: fc.option(text),
    creator_name: text,
    tags: fc.array(text, { maxLength: 3 }),
    status: fc.constantFrom(...publicStatuses),
    pledged_amount: fc.oneof(
      fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
      fc.constant('12.5'),
    ),
    backer_count: fc.oneof(fc.nat(), fc.constant('18446744073709551615')),
    end_date: fc.option(clickHouseTime),
    updated_at: clickHouseTime,
    creator_id: fc.constant('private'),
  })
  .map(fields => projectRowOf(JSON.stringify({ ...detailRow, ...fields })))
const counts = { total: fc.nat(), limit: fc.nat(), offset: fc.nat(), has_more: fc.boolean() }

test('a page of written campaigns has the bytes that its schema would leave, at any time', () => {
  fc.assert(
    fc.property(fc.array(row, { maxLength: 4 }), fc.record(counts), moment, (rows, pagination, now) => {
      const data = rows.map(one => presentProject(one, now))
      const wanted = JSON.stringify(projectListBodySchema.parse({ data, pagination }))
      const made = { createdAt: now, expiresAt: now }
      expect(pageText({ written: rows.map(writeCampaign), pagination }, made)).toBe(wanted)
      expect(wanted).not.toContain('private')
    }),
  )
})
