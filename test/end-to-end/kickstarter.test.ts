/**
 * The main job on real input: the whole Kickstarter table as change events, with noise, through the command line into
 * a running service, and every campaign compared with the table's truth over HTTP.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openOwnTables } from '../support/clickhouse.ts'
import {
  appendKickstarter,
  issueCredentials,
  peakMemoryMb,
  type RunCommand,
  untilAccepted,
  untilDrained,
} from '../support/kickstarter.ts'
import { type Asked, describeAnswers, expectTrueViews } from '../support/kickstarter-answers.ts'
import { kickstarterTable, needs } from '../support/requirements.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/service-process.ts'

const directory = makeDataDirectory()
const command: RunCommand = (args, stdin) => runCli([...args, '--data-dir', directory.path], stdin)
let service: ServiceProcess
let asked: Asked

describe('the real Kickstarter table, with five percent of noise', () => {
  beforeEach(context => needs(context, kickstarterTable))

  beforeAll(async () => {
    if (!kickstarterTable.isMet) return
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path], {
      PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
    })
    const { truth } = await appendKickstarter(command)
    // A key that is not folded within 15 s is given up, and a backlog of the whole table may take longer on a busy machine.
    await untilDrained(service)
    asked = { apiUrl: service.apiUrl, credentials: await issueCredentials(command, 'a'), truth }
    await untilAccepted(service.apiUrl, asked.credentials)
    // A new clone also generates the events first. Only a hang takes this long, also on a busy machine.
  }, 900_000)

  afterAll(async () => {
    await service?.stop()
    directory.remove()
  })

  describeAnswers('the API', { sort: 'newest', isSampled: index => index % 20 === 0 }, () => asked)

  test('the projector stays within its memory', () => {
    expect(peakMemoryMb('the embedded service', service)).toBeLessThan(1_500)
  })

  test("the data teams' views say what the table says, of every campaign and every tier", async () => {
    await service.stop()
    const { tables, close } = await openOwnTables({ directory: directory.path })
    try {
      await expectTrueViews(tables, asked.truth)
    } finally {
      await close()
    }
  })
})
