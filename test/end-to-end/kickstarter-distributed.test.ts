/**
 * The main job, distributed: the whole Kickstarter table as change events, with noise, through real Kafka, two
 * projectors, ClickHouse over HTTP and Redis, compared with the table's truth at a query process and in the views.
 *
 * PLEDGEVIEW_TEST_SHARDS=2 runs it on a cluster of two shards.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import type { LocalServices } from '../support/deployment/local-services.ts'
import { onTables } from '../support/deployment/seen-campaigns.ts'
import type { ServiceProcess } from '../support/deployment/service-process.ts'
import {
  type Appended,
  appendKickstarter,
  generatedKickstarter,
  issueCredentials,
  peakMemoryMb,
  projectionStatus,
  type Truth,
  untilAccepted,
  untilDrained,
  untilLeads,
} from '../support/events/kickstarter.ts'
import { describeAnswers, expectTrueViews } from '../support/events/kickstarter-answers.ts'
import { kickstarterTable } from '../support/runner/requirements.ts'

const shards = process.env.PLEDGEVIEW_TEST_SHARDS

let services: LocalServices
let deployment: Deployment
let projectors: [ServiceProcess, ServiceProcess]
let query: ServiceProcess
let credentials: Record<string, string>
let appended: Appended
let truth: Truth

describe('the real Kickstarter table, with five percent of noise, distributed', () => {
  // A new clone generates the events while the services start.
  let generated: ReturnType<typeof generatedKickstarter>
  beforeAll(() => {
    if (!kickstarterTable.isMet) return
    generated = generatedKickstarter()
    // If it fails, the append says so.
    generated.catch(() => undefined)
  })

  useLocalDeployment({
    also: kickstarterTable,
    ...(shards !== undefined && { shards: Number(shards) }),
    settings: { PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000' },
    prepare: async local => {
      ;({ services, deployment } = local)
      const first = await deployment.startProjector()
      await untilLeads(first)
      // Before the events: a key that is not folded within 15 s is given up, and behind them it may take longer on a busy machine.
      credentials = await issueCredentials(deployment.command, 'a')
      projectors = [first, await deployment.startProjector()]
      ;({ truth, ...appended } = await appendKickstarter(deployment.command, await generated))
      const appendedAt = performance.now()
      await untilDrained(...projectors)
      const linesPerSecond = Math.round((1_000 * appended.appended) / appended.elapsed_ms)
      const drainMs = Math.round(performance.now() - appendedAt)
      console.log(`${appended.appended} events appended at ${linesPerSecond}/s, drained ${drainMs} ms later`)
      query = await deployment.startQuery()
      await untilAccepted(query.apiUrl, credentials)
    },
    // A new clone also generates the events first. Only a hang takes this long, also on a busy machine.
    msMax: 900_000,
  })

  describeAnswers(() => ({ apiUrl: query.apiUrl, credentials, truth }))

  test("the data teams' views say what the table says, of every campaign and every tier", async () => {
    await onTables(services.clickHouse, tables => expectTrueViews(tables, truth))
  })

  test('both projectors took their share of every event, and refused none', async () => {
    const statuses = await Promise.all(projectors.map(projectionStatus))
    const records = statuses.map(({ projector }) => projector.records)
    // The key that was issued is an event too.
    expect(records.reduce((sum, count) => sum + count, 0)).toBe(appended.appended + 1)
    expect(Math.min(...records)).toBeGreaterThan(0.3 * appended.appended)
    expect(statuses.map(({ projector }) => projector.rejects)).toEqual([0, 0])
  })

  test('every process stays within its memory', () => {
    for (const projector of projectors) expect(peakMemoryMb('a projector', projector)).toBeLessThan(700)
    expect(peakMemoryMb('a query process', query)).toBeLessThan(400)
  })
})
