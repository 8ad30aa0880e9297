/** `pledgeview rebuild` on an embedded service, as its users run it: beside HTTP readers, cut off, refused and taken back. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { launchProcess } from '../support/deployment/service-process.ts'
import {
  type Answers,
  linesOf,
  makeRebuildService,
  type RebuildService,
  resultOf,
  slowly,
  smallPlatform,
} from '../support/generations/rebuild-service.ts'

// Only a hang takes as long as this, also on a busy machine.
vi.setConfig({ hookTimeout: 300_000 })

describe('a rebuild of a running service', { timeout: 300_000 }, () => {
  let service: RebuildService
  let truth: Answers
  let campaigns: number
  /** When everything had its stamp. */
  let stampedBefore: string

  beforeAll(async () => {
    service = await makeRebuildService()
    await service.append(smallPlatform())
    await service.start()
    stampedBefore = new Date().toISOString()
    truth = await service.answers()
    campaigns = truth.ids.length
    expect(campaigns).toBeGreaterThan(10)
  })

  afterAll(() => service.close())

  test('there was none yet, and status says so', async () => {
    const [status, json, rollback, drop] = await Promise.all([
      service.rebuild('status'),
      service.rebuild('status', '--json'),
      service.rebuild('rollback'),
      service.rebuild('drop'),
    ])
    expect(status).toMatchObject({ code: 0, stdout: 'There has never been a rebuild.\n' })
    expect(JSON.parse(json.stdout)).toEqual({ rebuild: null })
    expect([rollback.code, drop.code]).toEqual([1, 1])
  })

  test('changes no answer and no updated_at, and tells how far it is', async () => {
    const asking = service.askOn(truth)
    const rebuild = await service.rebuild('--json')
    const asked = await asking.stop()
    expect(rebuild.code, rebuild.stderr).toBe(0)
    expect(asked.others).toEqual([])
    expect(asked.count).toBeGreaterThan(10)
    expect(await service.changedSince(stampedBefore)).toEqual([])
    const lines = linesOf(rebuild)
    expect(lines.slice(0, -1).every(({ type }) => type === 'progress')).toBe(true)
    expect(lines.length).toBeGreaterThan(2)
    expect(resultOf(rebuild), JSON.stringify(resultOf(rebuild))).toMatchObject({
      type: 'result',
      outcome: 'rebuilt',
      differences: { same: campaigns, added: 0, removed: 0, different: 0 },
      failure: null,
    })
    expect(service.hasOther()).toBe(true)
  })

  test('is refused while the previous tables are kept', async () => {
    const refused = await service.rebuild()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('pledgeview rebuild drop')
  })

  test('rollback returns to the previous tables, with a line per phase in a log, and drop removes the others', async () => {
    const back = await service.rebuild('rollback')
    expect(back).toMatchObject({ code: 0, stdout: expect.stringContaining('are live again') })
    expect(back.stderr).toMatch(/^verifying$/m)
    expect(await service.answers()).toEqual(truth)
    expect(await service.rebuild('status')).toMatchObject({
      stdout: expect.stringContaining('previous     kept'),
    })
    expect(await service.rebuild('drop')).toMatchObject({
      code: 0,
      stdout: 'All tables but the current ones are dropped.\n',
    })
    expect(service.hasOther()).toBe(false)
    expect(await service.answers()).toEqual(truth)
    // A promotion is no second projector.
    expect(service.process().output()).not.toContain('another projector')
  })

  test('drop is refused while a command rebuilds; when that is interrupted, it leaves nothing', async () => {
    const running = await launchProcess(['rebuild', '--data-dir', service.root], slowly, 'reading log')
      .started
    const refused = await service.rebuild('drop')
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('interrupt its command') })
    expect(await running.stop('SIGINT')).toBe(1)
    expect(await service.rebuild('drop')).toMatchObject({ code: 0 })
    expect(service.hasOther()).toBe(false)
    expect(await service.answers()).toEqual(truth)
  })

  test('killed, it goes on with the same command, also after a restart of the service', async () => {
    // A statement a campaign, so that there is time to kill it.
    const folding = { PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: '1' }
    const { child, started } = launchProcess(['rebuild', '--data-dir', service.root], folding, 'never said')
    started.catch(() => undefined)
    const exit = once(child, 'exit')
    await service.untilPhase('folding')
    child.kill('SIGKILL')
    await exit
    const id = (await service.report())?.id
    await service.process().stop()
    await service.start()
    const last = await service.rebuild('--json')
    expect(last.code, last.stderr).toBe(0)
    expect(resultOf(last)).toMatchObject({
      id,
      outcome: 'rebuilt',
      differences: { same: campaigns, different: 0 },
    })
    expect(await service.changedSince(stampedBefore)).toEqual([])
    expect(await service.answers()).toEqual(truth)
    expect(await service.rebuild('drop')).toMatchObject({ code: 0 })
  })

  test('if no service runs, the command does it alone; interrupted it says how to continue, and does', async () => {
    await service.process().stop()
    const args = ['rebuild', '--data-dir', service.root]
    const interrupted = await launchProcess(args, slowly, 'reading log').started
    expect(await interrupted.stop('SIGINT')).toBe(1)
    expect(interrupted.output()).toContain('Run the same command again to continue')
    const status = await service.rebuild('status')
    expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining('it was interrupted') })
    const again = await service.rebuild('--json')
    expect(again.code, again.stderr).toBe(0)
    expect(resultOf(again)).toMatchObject({ outcome: 'rebuilt', differences: { same: campaigns } })
    await service.start()
    expect(await service.answers()).toEqual(truth)
  })
})
